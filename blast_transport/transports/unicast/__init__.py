"""The transport `unicast`: one copy to every receiver, each over its own connection."""
