"""What learns from data in one place."""
