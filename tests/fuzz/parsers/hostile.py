"""Inputs that are hostile to any parser: what libraries and recursion are known to fall for."""

from __future__ import annotations

_DEPTH = 5_000
_LAUGHS = "\n".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}' if i else 'ha'] * 9)}]" for i in range(12))
_ENTITIES = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 9 if i else "ha"}">' for i in range(12))

HOSTILE: dict[str, bytes] = {
    "nothing": b"",
    "zeros": bytes(60_000),
    "not_utf8": b"\xff\xfe\xfd",
    "byte_order_mark": b"\xef\xbb\xbf{}",
    "deep_lists": b"[" * _DEPTH + b"]" * _DEPTH,
    "deep_mappings": b'{"a":' * _DEPTH + b"1" + b"}" * _DEPTH,
    "deep_braces": b"{" * 30_000,
    "deep_parentheses": b"control c() { apply { x = " + b"(" * 30_000,
    "deep_dashes": b"- " * 20_000,
    "many_digits": b"9" * 60_000,
    "many_digits_in_a_mapping": b'{"a": ' + b"9" * 60_000 + b"}",
    "an_exponent": b'{"a": 1e999999999, "name": 1e999999999}',
    "aliases_of_aliases": _LAUGHS.encode(),
    "an_alias_of_itself": b"a: &a [*a]\n",
    "merged_with_itself": b"a: &a\n  <<: *a\n",
    "a_python_object": b"a: !!python/object/apply:os.system ['touch /tmp/gradbed-was-here']\n",
    "sexagesimal": b"a: 1" + b":59" * 20_000 + b"\n",
    "a_date_that_is_none": b"a: 2001-99-99\n",
    "a_key_that_is_a_list": b"? [a, b]\n: c\n",
    "entities_of_entities": f"<!DOCTYPE x [{_ENTITIES}]><graphml><x>&a11;</x></graphml>".encode(),
    "a_file_as_an_entity": b'<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><graphml>&f;</graphml>',
    "macros_of_macros": b"\n".join(f"#define a{i} {f'a{i - 1} ' * 9 if i else 'ha'}".encode() for i in range(12))
    + b"\na11\n",
    "a_macro_of_itself": b"#define a a a\na\n",
    "an_include_of_itself": b'#include "program.p4"\n',
    "an_include_of_a_device": b'#include "/dev/zero"\n',
    "backslashes": b"\\\n" * 30_000,
    "spaces": b" " * 60_000,
    "lines": b"\n" * 60_000,
    "a_long_word": b"a" * 60_000,
    "a_comment_without_end": b"/*" * 30_000,
    "a_text_without_end": b'"' + b"\\" * 60_001,
}
