"""The world: what happens when, in virtual time, around the two shipped machines. It fills a history, and watches what holds at each step."""
