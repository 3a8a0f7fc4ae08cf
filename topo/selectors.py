"""Selectors of links and hosts (l1-s1, h1), and the default hosts of jobs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from gradbed.common.errors import UserError, suggestion
from gradbed.topo.graph import Link, Topology

ALL = "all"


@dataclass(frozen=True)
class Selection:
    """A link, seen from its first-named node; or a host with all its interfaces. name: as it is written."""

    name: str
    host: str | None
    links: tuple[Link, ...]


def select(topology: Topology, word: str) -> Selection:
    """Return the link A-B, or the host, that names or labels of nodes select.

    Raises:
        UserError: It is neither.
    """
    hosts = {host.name for host in topology.hosts}
    word = with_node_names(topology, word)
    if word in hosts:
        links = [link for link in topology.host_links if word in (link.a.node, link.b.node)]
        return Selection(word, word, tuple(sorted(links, key=lambda link: link.end(word).port)))
    a, dash, b = word.partition("-")
    if dash and b in topology.graph.adj.get(a, ()):
        return Selection(word, None, (topology.link(a, b),))
    if word in topology.graph:
        near = " or ".join(f"{word}-{other}" for other in topology.neighbours(word))
        raise UserError(f"{word} is a switch: name a host, or a link of it, {near}")
    names = [*sorted(hosts), *(name for link in topology.links for name in _names(link))]
    hint = suggestion(word, names)
    if "did you mean" not in hint:
        hint = f"; a link is written {names[-1]}, a host {names[0]}"
    raise UserError(f"{topology.name} has no link or host {word!r}{hint}")


def with_node_names(topology: Topology, word: str) -> str:
    """Return the text with names of nodes in place of labels, which may have dashes themselves."""
    if word in topology.graph or not topology.labels:
        return word
    dashes = [index for index, letter in enumerate(word) if letter == "-"]
    for a, b in ((word[:dash], word[dash + 1 :]) for dash in dashes):
        ends = topology.node_name(a), topology.node_name(b)
        if all(end in topology.graph for end in ends):
            return "-".join(ends)
    return topology.node_name(word)


def select_all(topology: Topology, words: Sequence[str]) -> tuple[Selection, ...]:
    """Return what the words select, each once; `all` selects all links. A plain text is one word.

    Raises:
        UserError: A word selects nothing.
    """
    found: dict[object, Selection] = {}
    for word in [words] if isinstance(words, str) else words:
        for name in [_names(link)[0] for link in topology.links] if word == ALL else [word]:
            each = select(topology, name)
            found.setdefault((each.host, each.links), each)
    return tuple(found.values())


def _names(link: Link) -> tuple[str, str]:
    return f"{link.a.node}-{link.b.node}", f"{link.b.node}-{link.a.node}"


# ---- Hosts of jobs, by default ----


def choose_hosts_of_jobs(topology: Topology, jobs: int, workers: int) -> list[tuple[tuple[str, ...], str]]:
    """Return (worker names, server name) for each of several jobs that share no host.

    Servers and workers are spread evenly over the hosts, and neighbours belong to different jobs.
    """
    if jobs < 1:
        raise UserError(f"a run needs at least one job, got {jobs}")
    if jobs == 1:
        return [choose_hosts(topology, workers)]
    if workers < 1:
        raise UserError(f"a job needs at least one worker, got {workers}")
    names = [host.name for host in topology.hosts]
    needed = jobs * (workers + 1)
    if needed > len(names):
        raise UserError(
            f"{jobs} jobs of {workers} workers and a server need {needed} hosts, the topology has {len(names)}"
        )
    servers = [names[index * len(names) // jobs] for index in range(jobs)]
    rest = [name for name in names if name not in servers]
    chosen = [rest[index * len(rest) // (jobs * workers)] for index in range(jobs * workers)]
    return [(tuple(chosen[job::jobs]), server) for job, server in enumerate(servers)]


def choose_hosts(topology: Topology, workers: int, busy: Collection[str] = ()) -> tuple[tuple[str, ...], str]:
    """Return (worker names, server name): the first idle host serves, workers are spread over the others."""
    if workers < 1:
        raise UserError(f"a job needs at least one worker, got {workers}")
    names = [host.name for host in topology.hosts if host.name not in busy]
    if workers + 1 > len(names):
        plural = "worker and a server need" if workers == 1 else "workers and a server need"
        there = f"{len(names)} of {len(topology.hosts)} are free" if busy else f"the topology has {len(names)}"
        raise UserError(f"{workers} {plural} {workers + 1} hosts, {there}")
    server, *rest = names
    return tuple(rest[index * len(rest) // workers] for index in range(workers)), server
