"""Where a replica may listen: on this machine alone, unless tokens and TLS keep others out or somebody says that they need
not. Pure."""

from ..http.host_header import is_loopback


def exposure_problem(
    host: str, url: str, *, has_tokens: bool, has_tls: bool, allows_plain: bool, allows_anyone: bool
) -> str | None:
    """Why a replica must not listen at `host` like that, and what to do; None when it may. `url` is its own in the cluster file;
    `allows_plain`, `allows_anyone`: the operator said that it may do without TLS (in a network of its own, say), or without
    tokens."""
    if url.startswith("https:") and not has_tls and not allows_plain:
        return (
            f"the cluster file says {url}, and no certificate was given: give --tls-cert and --tls-key, or "
            "--allow-plain-http when something in front of it does TLS"
        )
    if url.startswith("http:") and has_tls:
        return f"a certificate was given, but the cluster file says {url}: write https:// there"
    if is_loopback(host):
        return None
    if not has_tokens and not allows_anyone:
        return (
            f"{host} is not a loopback address, and anyone who reaches it could read and write: set a token "
            "(QUORATE_TOKEN) or a list of them (QUORATE_TOKENS_FILE), listen on 127.0.0.1, or say --allow-anyone"
        )
    if not has_tls and not allows_plain:
        return (
            f"{host} is not a loopback address, and tokens and items would cross the network in the clear: give "
            "--tls-cert and --tls-key, listen on 127.0.0.1, or say --allow-plain-http where nobody can listen in"
        )
    return None
