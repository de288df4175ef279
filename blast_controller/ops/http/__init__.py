"""The HTTP side of the controller: health and metrics, for programs and people who only look."""
