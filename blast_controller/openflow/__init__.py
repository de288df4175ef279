"""Rules on the ToR switches: a Ryu application on os-ken or ryu."""
