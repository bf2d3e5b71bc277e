#!/usr/bin/env python3
"""Makes templates.jsonl: what Jinja2, as transformers runs it, makes of the templates in templates/ and of many
expressions. A line is {"template", "variables", "want"} or, where Jinja2 refuses, {"template", "variables"}.

    make_templates.py > templates.jsonl          (transformers 5.24.0, jinja2 3.1.6)

smollm2.jinja is the template in SmolLM2-135M-Instruct's GGUF file (Apache-2.0); the others are our own.
"""
import json
import pathlib

import template_cases
from transformers.utils.chat_template_utils import _compile_jinja_template

CONTEXT = {
    "s": "  Hello, Wörld 數據 🙂!  ", "t": "a,b,,c", "e": "", "n": 7, "neg": -7, "r": 2.5, "big": 12345678901234567890,
    "yes": True, "no": False, "nil": None, "xs": [3, 1, 2], "names": ["b", "A", "c", "a"], "d": {"b": 1, "a": [1, 2, {"k": "v"}]},
    "objs": [{"n": "x", "v": 3, "o": {"p": 1}}, {"n": "Y", "v": 1, "o": {"p": 2}}, {"n": "z", "v": 2}], "q": "it's \"q\"\n\t\\",
    "text": "one two\nthree\n\n  four", "mixed": [1, "a", None, 2.0, True, [1], {"x": "y"}],
}
# between broken bars
EXPRESSIONS = """
s|trim ¦ s.strip() ¦ s.lstrip() ¦ s.rstrip() ¦ s|length ¦ s.upper() ¦ s|lower ¦ s|title ¦ s.title() ¦ s|capitalize ¦ s[2:7] ¦ s[-5:-2] ¦ s[::-1] ¦ s[0] ¦ s[9] ¦ s[100]
s[::2] ¦ s[10:2:-3] ¦ s[5:1] ¦ s[:-1] ¦ xs[1:] ¦ xs[::-1] ¦ xs[-2:] ¦ xs[5:] ¦ t.split(',') ¦ t.split(',', 1) ¦ t.rsplit(',', 1) ¦ s.split() ¦ text.split('\\n') ¦ text.splitlines()
t.replace(',', ';') ¦ t.replace(',', ';', 1) ¦ t|replace(',', '') ¦ 'abc'.replace('', '-') ¦ t.find('b') ¦ t.rfind(',') ¦ t.find('zz') ¦ t.count(',') ¦ t.startswith('a')
t.startswith(('x', 'a')) ¦ t.endswith('c') ¦ '-'.join(names) ¦ names|join('-') ¦ objs|join(',', attribute='n') ¦ t.partition(',') ¦ t.rpartition(',')
t.removeprefix('a,') ¦ t.removesuffix(',c') ¦ 'x{}y{}'.format(1, 'b') ¦ '{0}{1}{0}'.format('a', 2) ¦ '{k}'.format(k=3) ¦ '%s=%d' % ('a', 3) ¦ '%s' % n ¦ '100%%' % ()
s.isdigit() ¦ '12'.isdigit() ¦ 'ab'.isalpha() ¦ 'AB'.isupper() ¦ 'ab1'.isalnum() ¦ '  '.isspace() ¦ ''.isspace()
n + 1 ¦ n - 10 ¦ n * 3 ¦ n / 2 ¦ n // 2 ¦ neg // 2 ¦ n % 3 ¦ neg % 3 ¦ n ** 3 ¦ 2 ** -1 ¦ -n ¦ +n ¦ r * 2 ¦ r + n ¦ r // 1 ¦ r % 1 ¦ -7.5 % 2 ¦ 1e3 ¦ 1.0 ¦ 100000000000000000.0 ¦ 0.1 + 0.2 ¦ 1e-7 ¦ 3.0 * 2
'a' * 3 ¦ 3 * 'ab' ¦ xs * 2 ¦ xs + [4] ¦ (1, 2) + (3,) ¦ 'a' ~ n ~ r ~ nil ~ yes ¦ n ~ '' ¦ n == 7.0 ¦ yes == 1 ¦ 'a' == 'a' ¦ xs == [3, 1, 2] ¦ d == {'a': [1, 2, {'k': 'v'}], 'b': 1}
1 < 2 < 3 ¦ 3 > 2 > 2 ¦ 'a' < 'b' ¦ n in xs ¦ 3 in xs ¦ 'b' in t ¦ 'b' in d ¦ 'z' not in d ¦ nil in mixed ¦ x in xs ¦ 'x' in nope ¦ not yes ¦ not nope ¦ yes and n ¦ no or 'd' ¦ nope or nil
n if yes else r ¦ n if no else r ¦ n if no ¦ (n if no) is undefined ¦ nope ¦ nope is defined ¦ nil is none ¦ n is number ¦ yes is number ¦ r is float ¦ yes is integer ¦ n is integer
s is string ¦ d is mapping ¦ xs is sequence ¦ s is sequence ¦ d is iterable ¦ n is iterable ¦ n is odd ¦ n is even ¦ n is divisibleby 7 ¦ n is divisibleby(2) ¦ 'a' is in names
n is sameas 7 ¦ yes is true ¦ no is false ¦ yes is boolean ¦ 'abc' is lower ¦ 'ABC' is upper ¦ range is callable ¦ n is eq 7 ¦ n is ne 7 ¦ n is gt 3 ¦ n is lessthan 3 ¦ xs is not string
range(5)|list ¦ range(2, 9, 3)|list ¦ range(5, 0, -2)|list ¦ range(0)|list ¦ dict(a=1, b='x') ¦ dict(a=1).items()|list ¦ d.items()|list ¦ d.keys()|list ¦ d.values()|list
d.get('b') ¦ d.get('zz') ¦ d.get('zz', 5) ¦ d['a'][2].k ¦ d.a.2.k ¦ d['zz'] ¦ d.zz ¦ xs|first ¦ xs|last ¦ ''|first ¦ s|first ¦ []|last ¦ xs|sort ¦ xs|sort(reverse=true) ¦ names|sort
names|sort(case_sensitive=true) ¦ objs|sort(attribute='v')|map(attribute='n')|list ¦ objs|map(attribute='o.p', default=0)|list ¦ objs|selectattr('v', 'gt', 1)|list|length
objs|selectattr('o')|list|length ¦ objs|rejectattr('n', 'equalto', 'x')|map(attribute='n')|list ¦ xs|select('odd')|list ¦ xs|reject('odd')|list ¦ xs|select|list ¦ nil|select|list
xs|max ¦ xs|min ¦ names|max ¦ objs|max(attribute='v') ¦ xs|sum ¦ objs|sum(attribute='v') ¦ names|map('upper')|list ¦ names|map('length')|list ¦ [1, 1, 2, 1]|unique|list
names|unique|list ¦ xs|reverse|list ¦ 'abc'|reverse ¦ [1, 2, 3, 4, 5]|batch(2)|list ¦ [1, 2, 3]|batch(2, 0)|list ¦ d|dictsort ¦ d|length ¦ d|list ¦ mixed|string ¦ d|string ¦ q|string
mixed|tojson ¦ d|tojson ¦ d|tojson(indent=2) ¦ q|tojson ¦ s|tojson ¦ s|tojson(ensure_ascii=true) ¦ big|tojson ¦ r|tojson ¦ []|tojson(indent=2) ¦ {}|tojson ¦ d|tojson(separators=(',', ':'))
d|tojson(sort_keys=true) ¦ [1, [2, {'a': []}]]|tojson(indent=3) ¦ nope|tojson ¦ nil|tojson ¦ nil|string ¦ yes|string ¦ '5'|int ¦ 'x'|int ¦ 'x'|int(9) ¦ '3.7'|int ¦ r|int ¦ ' 8 '|int ¦ 'ff'|int(0, 16)
'1.5'|float ¦ 'x'|float ¦ n|float ¦ r|round ¦ 2.567|round(2) ¦ 2.1|round(0, 'ceil') ¦ 7|round ¦ n|abs ¦ neg|abs ¦ -2.5|abs ¦ nope|default('x') ¦ e|default('x') ¦ e|default('x', true) ¦ nil|default('x')
nope|d('y') ¦ text|indent ¦ text|indent(2, true) ¦ text|indent(2, blank=true) ¦ text|indent('> ') ¦ text|wordcount ¦ '<a&b>'|escape ¦ q|e ¦ objs[0]|items|list ¦ names|length ¦ nope|length
[q] ¦ [s] ¦ ['\\x00\\x7f\\u00a0\\u2028é'] ¦ (1,) ¦ () ¦ {'a': (1, 2)} ¦ [1.0, 1e16, 1e-5] ¦ {1: 2} ¦ {1: 2}|tojson ¦ '\\u00e9\\t' ¦ 'a' 'b' ¦ "it's" ¦ '\\'' ¦ loop ¦ objs|map(attribute='zz')|list
xs.index(1) ¦ xs.count(1) ¦ xs.append(5) ¦ d.update({}) ¦ xs|nosuch ¦ xs is nosuch ¦ nope.x ¦ nope.x.y ¦ d.zz.y ¦ nope() ¦ xs() ¦ 1 + 'a' ¦ 'a' + 1 ¦ nil + 1 ¦ 1 < 'a' ¦ 1 / 0 ¦ 1 // 0 ¦ 1 % 0 ¦ n()
raise_exception('no') ¦ d|items|list ¦ 'a,b'|list ¦ 'ab'|first ¦ objs|map('nosuch')|list ¦ names|sort|join ¦ objs|map(attribute='o')|map(attribute='p')|list ¦ s|trim('! ') ¦ 'xxaxx'.strip('x')
'ǆ'.upper() ¦ 'a.b c-d'.title() ¦ 'a.b c-d'|title ¦ namespace(a=1).a ¦ namespace().b ¦ not (1 == 2) ¦ 1 if [] else 2 ¦ 1 if [0] else 2 ¦ -1 ** 2 ¦ 2 ** 3 ** 2 ¦ -1|abs
(n, r) ¦ [n, r][1] ¦ {'a': 1}.a ¦ {'a': 1}['a'] ¦ 'a'.b ¦ 5.b ¦ xs.0 ¦ xs.9 ¦ yes + 1 ¦ yes * 2.5 ¦ true and true ¦ none is none ¦ True ¦ None ¦ false or none ¦ 1 is not none ¦ xs is iterable and n
""".strip()
STATEMENTS = [
    "{% for x in xs %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ x }};{% endfor %}",
    "{% for x in [] %}a{% else %}none{% endfor %}", "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k in d %}{{ k }}{% endfor %}",
    "{% for c in 'añ🙂' %}[{{ c }}]{% endfor %}", "{% for x in xs if x > 1 %}{{ x }}{{ loop.length }}{% endfor %}",
    "{% for x in xs %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "{% for x in xs %}{{ x }}{% if x == 1 %}{% break %}{% endif %}{% endfor %}",
    "{% set x = 1 %}{% for i in xs %}{% set x = i %}{% endfor %}{{ x }}", "{% set x = 1 %}{% for i in xs %}{{ x }}{% set x = x + 1 %}{% endfor %}",
    "{% if no %}{% set z = 1 %}{% else %}{% set z = 2 %}{% endif %}{{ z }}", "{% set ns = namespace(i=0) %}{% for x in xs %}{% set ns.i = ns.i + x %}{% endfor %}{{ ns.i }}",
    "{% set a, b = 1, 2 %}{{ b }}{{ a }}", "{% set a = 1, 2 %}{{ a }}", "{% set x %}a{{ n }}b{% endset %}{{ x }}{{ x|length }}", "{% set x | upper %}abc{% endset %}{{ x }}",
    "{% macro m(a, b=2, c='z') %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}|{{ m(1, c=3) }}|{{ m(1, 5, 6) }}|{{ m() }}",
    "{% macro m() %}{{ n }}{{ x }}{% endmacro %}{% set x = 4 %}{{ m() }}", "{% macro f(k) %}{% if k > 0 %}{{ k }}{{ f(k - 1) }}{% endif %}{% endmacro %}{{ f(4) }}",
    "{% macro w(x) %}<{{ caller(x) }}>{% endmacro %}{% call(y) w(3) %}[{{ y }}]{% endcall %}", "{% filter upper %}ab{{ n }}c{% endfilter %}",
    "{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a }}", "a {%- if yes %} b {%- endif %} c", "a\n  {% if yes %}\n  b\n  {% endif %}\nc\n", "a\n  {%+ if yes %}\n  b\n  {%+ endif %}\nc",
    "  {{ n }}  \n  {{- n -}}  \n x", "a\n {# c #}\nb {#- c -#} d\n\n", "{% raw %}{{ x }}{% y %}{% endraw %}z", "{%- raw -%}  a  {%- endraw -%}  b", "line\r\nend\r\n", "\n\n", "x\n", "x\n\n",
    "{% for x in xs %}\n  {{ x }}\n{% endfor %}\n", "{{ '}}' }}{{ \"%}\" }}{{ '{{' }}", "{{ {'a': {'b': 1}} }}", "{{ {'a': {'b': 1}}['a']['b'] }}", "{# a {{ b }} #}x", "{% for x in xs -%}\n {{ x }} \n{%- endfor %}",
    "{% for x in xs %}{{ loop.previtem }}{{ loop.nextitem }},{% endfor %}", "{% for x in xs %}{{ loop.cycle('a', 'b') }}{% endfor %}", "{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{% endfor %}",
    "{% for x in xs %}{% for y in xs %}{{ loop.depth }}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}", "{% generation %}a{{ n }}{% endgeneration %}b",
    "{% if nope is defined and nope.x %}a{% elif n > 5 and n < 10 %}b{% else %}c{% endif %}", "{{ nope.x }}", "{% for x in nope %}a{% endfor %}b", "{% for x in n %}{% endfor %}", "{% for a, b in xs %}{% endfor %}",
    "{% include 'x' %}", "{% import 'x' as y %}", "{% extends 'x' %}", "{{ n", "{% if %}", "{% endif %}", "{% for %}", "{{ }}", "{{ 1 + }}", "{% set 1 = 2 %}", "{{ 'a }}", "{# a",
    "{% if n %}", "{{ (1 }}", "{{ [1, }}", "{{ n | }}", "{{ n is }}", "{{ @ }}", "{% foo %}", "{{ n n }}", "{% macro m(a=1, b) %}{% endmacro %}", "{% set n.x = 1 %}", "{% do 1 %}",
]


def render(source, variables):
    try:
        return {"want": _compile_jinja_template(source).render(**variables)}
    except Exception:  # noqa: BLE001
        return {}


def main():
    here = pathlib.Path(__file__).parent
    for path in sorted((here / "templates").glob("*.jinja")):
        source = path.read_text()
        for name, case in template_cases.CASES.items():
            variables = template_cases.variables(case)
            print(json.dumps({"file": path.name, "case": name, "variables": variables, **render(source, variables)},
                             ensure_ascii=False, separators=(",", ":")))
    print(json.dumps({"context": CONTEXT}, ensure_ascii=False, separators=(",", ":")))
    for source in ["{{ " + e.strip() + " }}" for line in EXPRESSIONS.split("\n") for e in line.split("¦")] + STATEMENTS:
        print(json.dumps({"template": source, **render(source, json.loads(json.dumps(CONTEXT)))}, ensure_ascii=False,
                         separators=(",", ":")))


if __name__ == "__main__":
    main()
