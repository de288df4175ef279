"""What readers are shown of the core: immutable snapshots, each of which shares with the last what has not changed."""
