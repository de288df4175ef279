"""What travels: the frames and messages of a control connection, and the datagrams of the light."""
