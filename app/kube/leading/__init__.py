"""Which of several Corrals acts: Leases, and the address behind which the one that holds one is."""
