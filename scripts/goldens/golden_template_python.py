"""Writes tests/golden/template-python.json: transformers' output for expressions that chat templates borrow from Python.

    pip install transformers==5.24.0 jinja2==3.1.6
    python scripts/goldens/golden_template_python.py > tests/golden/template-python.json

Each expression has its own template; null is an error.
"""

import json

from transformers.utils.chat_template_utils import _compile_jinja_template

METHODS = r"""
'a,b,,c'.rsplit(',') 'a,b,,c'.rsplit(',', 1) ' a  b c '.rsplit() ' a  b c '.rsplit(None, 1) ' a  b c '.split(None, 1) 'a-b-c'.rsplit('-', maxsplit=1)
'a-b-c'.split(sep='-', maxsplit=1) 'a-b'.split(maxsplit=0) ' a b'.split(maxsplit=0) 'abc'.split('') 'abc'.rsplit('') ''.split() ''.rsplit(',') 'x'.split('x')
'abcabc'.index('c') 'abcabc'.rindex('c') 'abc'.index('x') 'abc'.rindex('x') 'äbcb'.find('b', 2) 'äbcb'.find('b', -2) 'äbcb'.rfind('b', 0, 3) 'abc'.find('c', 0, 2)
'äöüb'.index('b') 'aXbX'.count('X') 'aXbX'.count('X', 2) 'abc'.count('') 'abc'.find('') 'abc'.find('', 5)
'<think>x'.removeprefix('<think>') 'x'.removeprefix('y') 'x</think>'.removesuffix('</think>') 'x'.removesuffix('') 'abc'.removeprefix('abc')
'a</think>b</think>c'.partition('</think>') 'a</think>b</think>c'.rpartition('</think>') 'abc'.partition('x') 'abc'.rpartition('x') 'abc'.partition('')
'7'.zfill(3) '-7'.zfill(4) '+7'.zfill(4) 'abc'.zfill(2) ''.zfill(2) 'é'.zfill(3) '--1'.zfill(5)
'a'.ljust(3)~'|' 'a'.ljust(4,'.') 'a'.rjust(3) 'a'.rjust(4,'.') 'ab'.center(5)~'|' 'abc'.center(6)~'|' 'ab'.center(7,'*') 'a'.center(4,'é') 'abc'.center(2) 'a'.ljust(3,'xy')
"it's a TEST".title() 'x1y éa'.title() 'aBc'.swapcase() 'STRASSE ß'.casefold() 'x'.nothing()
[3,1,2].index(1) [3,1,2].index(7) ['a','b','a'].index('a',1) ['a','b','a'].index('b',2) (1,2).index(2) [1,2,1].count(1)
"""
OPERATORS = r"""
'%s'%5 '%s and %s'%('a',1) '%d%%'%7 '%05.2f'%3.14159 '[%5s|%-5s]'%('a','b') '%s'%'x'|upper '%s'%messages[0].content '%s'%messages|length
'%(a)s-%(b)d'%{'a':'x','b':2} '%x'%255 'a'~'%s'%'b'~'c' '%s'%(1) '%s'%(1,) '%s'%none '%s'%true '%s'%2.0 '%r'%'x' '%s %s'%1 '%s'%(1,2)
7%3 (5)%3 '%i'%3.0 "%s"%('a'~'b') '%s'%[1,2] '%s'%-1
"""
FILTERS = r"""
'a bc, d-e it\'s'|wordcount ''|wordcount 'é_1 ~ ß'|wordcount 'ab'|center(6)~'|' 'abc'|center(4)~'|' 'ab'|center|length
'The quick brown fox jumps'|truncate(10) 'The quick brown fox jumps'|truncate(10,true) 'The quick brown fox'|truncate(10,false,'…') 'short'|truncate(3) 'The quick brown'|truncate(9,leeway=0)
'The quick brown'|truncate(length=9,killwords=true,end='',leeway=0) 'abcdefghijkl'|truncate(4,leeway=0) 'abc'|truncate(2) 'abcdefghijk'|truncate(2) ('x'*300)|truncate|length
'The quick brown fox jumps over'|wordwrap(10) 'a well-known co-operation--between us'|wordwrap(8) 'abcdefghijklmnop qr'|wordwrap(5) 'abcdefghijklmnop qr'|wordwrap(5,false)
'a well-known x'|wordwrap(6,true,'|') 'a\n\nbb cc\ndd'|wordwrap(4) '  lead and trail  '|wordwrap(7) 'abc-defghijk'|wordwrap(6) 'abc-defghijk'|wordwrap(6,break_on_hyphens=false) 'x'|wordwrap(0)
'a b/c?d=é&f'|urlencode {'a b':'c/d','e':1}|urlencode [('x','y z'),('é','/')]|urlencode 5|urlencode ''|urlencode 'A-Z_a.z~'|urlencode
'aXbXcX'|replace('X','-',2) 'aXbX'|replace('X','-') 'abc'|replace('','-') 'aXbX'|replace('X','-',0) 'abc'|replace('b',1) 12321|replace('2','x')
'3.7'|int '3'|int ' 42 '|int 'abc'|int 'abc'|int(7) 'abc'|int(default=-1) '0x1f'|int(base=16) '1f'|int(0,16) '1_000'|int '-3.9'|int 3.99|int true|int none|int '1e3'|int ''|int [1]|int 'nan'|int '0b11'|int(base=2) nothing|int
'3.7'|float 'abc'|float 'abc'|float(1.5) 5|float true|float none|float ' 2 '|float '1e3'|float nothing|float [1]|float
"""
TESTS = r"""
range\ is\ callable 5\ is\ callable 'x'\ is\ callable messages\ is\ callable nothing\ is\ callable raise_exception\ is\ callable namespace()\ is\ callable none\ is\ callable {}\ is\ callable
'\/' 'a\/b' '\a'=='\x07' '\v'=='\x0b' '\d' 'a\
b' '\\/' '\'' "\"" '\101' '\u00e9' '\x41'
"""

PRINTED = r"""
[1e-7,1e16,2.0] {'a':1e-7,'b':[1.5e300]} {'a':'x\u2028y','b':"it's"} ['\u00a0','\u200b','\ufeff','é','日','\x7f','\ue000'] [nothing] (1,) (1,2) () {'k':(1,'2')} {1:'a',none:true} [none,true] {'a':1e-7}|string [[],{}]
['a\nb','\t','é','\\'] [{'a':[{'b':(1.0,)}]}]
"""


def expressions():
    for block in [METHODS, OPERATORS, FILTERS, TESTS, PRINTED]:
        # Spaces within quotes and brackets do not separate expressions, nor does one after a backslash.
        current, depth, quote, escaped = "", 0, None, False
        for c in block:
            if escaped:
                current, escaped = (current[:-1] + c if c == " " else current + c), False
                continue
            if c.isspace() and not depth and quote is None:
                if current:
                    yield current
                current = ""
                continue
            escaped = c == "\\"
            if quote is None and c in "'\"":
                quote = c
            elif c == quote:
                quote = None
            elif quote is None:
                depth += (c in "([{") - (c in ")]}")
            current += c


def main():
    cases = {}
    for expression in ["7 % 3", *expressions()]:
        try:
            template = _compile_jinja_template("{{ " + expression + " }}")
            text = template.render(messages=[{"role": "user", "content": "hi"}], add_generation_prompt=False)
        except Exception:
            text = None
        cases[expression] = text
    print(json.dumps(cases, ensure_ascii=False, indent=0))


main()
