"""The operations, each as steps over rounds of messages: blind, observing, and those that ask for a decision. Pure."""
