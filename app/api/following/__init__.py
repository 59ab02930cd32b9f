"""What changes about gangs, for clients that follow it.

Read `events` (the route), then `stream` (the clients, their queues, and when each is dropped).
"""
