"""The transport `optical`: paced UDP multicast over a light path, which has no way back."""
