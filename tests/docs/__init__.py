"""The pages do what they say: their blocks are run, and what they name and link to is there."""
