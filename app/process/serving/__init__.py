"""Where Corral is asked: listeners and servers, their certificates, what /metrics shows."""
