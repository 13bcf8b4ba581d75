"""What runs in a company: local models of one domain's users and items, and what they share about users."""
