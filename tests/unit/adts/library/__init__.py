"""Types that come along."""
