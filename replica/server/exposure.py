"""Where a replica may listen: on this machine alone, unless tokens and TLS keep others out or somebody says that they need
not. Pure."""

from msgspec import Struct

from ..http.host_header import is_loopback


class Exposure(Struct, frozen=True):
    """What stands between a replica and whoever reaches its address. `allows_plain`, `allows_anyone`: the operator said that
    it may do without TLS (in a network of its own, say), or without tokens."""

    host: str
    url: str
    has_tokens: bool
    has_tls: bool
    allows_plain: bool = False
    allows_anyone: bool = False

    @property
    def is_loopback(self) -> bool:
        """Whether the address is this machine's alone."""
        return is_loopback(self.host)

    def problem(self) -> str | None:
        """Why the replica must not listen there like that, and what to do; None when it may."""
        if self.url.startswith("https:") and not self.has_tls and not self.allows_plain:
            return (
                f"the cluster document says {self.url}, and no certificate was given: give --tls-cert and --tls-key, or "
                "--allow-plain-http when something in front of it does TLS"
            )
        if self.url.startswith("http:") and self.has_tls:
            return f"a certificate was given, but the cluster document says {self.url}: write https:// there"
        if self.is_loopback:
            return None
        if not self.has_tokens and not self.allows_anyone:
            return (
                f"{self.host} is not a loopback address, and anyone who reaches it could read and write: set a token "
                "(QUORATE_TOKEN) or a list of them (QUORATE_TOKENS_FILE), listen on 127.0.0.1, or say --allow-anyone"
            )
        if not self.has_tls and not self.allows_plain:
            return (
                f"{self.host} is not a loopback address, and tokens and items would cross the network in the clear: give "
                "--tls-cert and --tls-key, listen on 127.0.0.1, or say --allow-plain-http where nobody can listen in"
            )
        return None
