"""The wire: messages, their codec, the table of problems, the committed OpenAPI document.

Owns every form that crosses a process border. Both sides import it and it imports neither: it must not know HTTP
libraries, sockets, stores or what a message leads to.
"""
