"""What leaves a company: which rows about shared users, and how they are protected."""
