"""Cassettes that are proven to those who were not there, and every attack on that."""
