"""Pictures of the rack-fabric multicast's evaluation."""
