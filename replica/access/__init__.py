"""Who may do what: tokens, scopes, rates, and lines about callers who were refused."""
