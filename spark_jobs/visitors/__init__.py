"""Website activity: made-up visits, sessions of visitors, page views."""
