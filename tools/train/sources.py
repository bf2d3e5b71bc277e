"""Where the text comes from. Only packages whose own files are under MIT, BSD, Apache-2.0, PSF, PostgreSQL, WordNet or in the
public domain; a file that names another licence in its head is left out (see allowed())."""
import glob
import gzip
import html.parser
import os
import re
import zipfile

# package -> (licence of the files used, glob below the unpacked package)
DEBIAN = {
    "python3.11-doc": ("PSF-2.0", "**/_sources/**/*.txt"),
    "sqlite3-doc": ("public domain", "**/*.html"),
    "postgresql-doc-15": ("PostgreSQL", "**/*.html"),
    "python-django-doc": ("BSD-3-Clause", "**/*.html"),
    "python-sqlalchemy-doc": ("MIT", "**/*.rst"),
    "apache2-doc": ("Apache-2.0", "**/en/**/*.html"),
    "erlang-doc": ("Apache-2.0", "**/*.html"),
    "llvm-14-doc": ("Apache-2.0 WITH LLVM-exception", "**/_sources/**/*.txt"),
    "nodejs-doc": ("MIT", "**/*.html"),
    "python-pandas-doc": ("BSD-3-Clause", "**/_sources/**/*.txt"),
    "rust-doc": ("MIT OR Apache-2.0", "**/html/@(book|reference|nomicon|rust-by-example|cargo|rustc|edition-guide|rustdoc)/**/*.html"),
    "wordnet-base": ("WordNet-3.0", "**/data.*"),
    "dict-devil": ("public domain", "**/*.dz"),
}
WHEELS = {
    "Apache-2.0": "accelerate arviz diffusers flax jax keras nltk pymc requests tornado transformers xarray",
    "BSD": "altair astropy bokeh boltons celery click dask distributed django flask httpx ipython jinja2 jupyter_server mpmath "
           "nbconvert networkx notebook numpy pandas pygments scikit_image scikit_learn scipy scrapy seaborn sphinx starlette "
           "statsmodels sympy toolz wagtail werkzeug",
    "MIT": "attrs black bottle dash faker fastapi marshmallow more_itertools plotly pydantic pytest rich sanic setuptools "
           "sqlalchemy sqlglot textual trio twisted urllib3 zarr",
    "PSF-2.0": "matplotlib",
}
STDLIB = "PSF-2.0"                                    # the interpreter's own library


class Text(html.parser.HTMLParser):
    """Reading text of a page: headings, paragraphs, list items and preformatted blocks."""
    SKIP, BLOCK = {"script", "style", "nav", "header", "footer", "head", "svg", "button", "form"}, \
        {"p", "li", "pre", "h1", "h2", "h3", "h4", "dt", "dd", "td", "th", "tr", "div", "section", "br", "table"}

    def __init__(self):
        super().__init__()
        self.out, self.skip, self.pre = [], 0, 0

    def handle_starttag(self, tag, attrs):
        self.skip += tag in self.SKIP
        self.pre += tag == "pre"
        if tag in self.BLOCK:
            self.out.append("\n\n" if tag in ("p", "pre", "h1", "h2", "h3", "h4", "section") else "\n")

    def handle_endtag(self, tag):
        self.skip -= tag in self.SKIP and self.skip > 0
        self.pre -= tag == "pre" and self.pre > 0
        if tag in ("p", "pre", "h1", "h2", "h3", "h4"):
            self.out.append("\n\n")

    def handle_data(self, data):
        if not self.skip:
            self.out.append(data if self.pre else re.sub(r"\s+", " ", data))


def page_text(raw):
    t = Text()
    t.feed(raw)
    s = "\n".join(line.rstrip() for line in "".join(t.out).replace("\xa0", " ").replace("¶", "").split("\n"))
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"(?m)^ (?=\S)", "", s)).strip()


def allowed(text):
    return not re.search(r"General Public License|GPL|Creative Commons|CC-BY|All rights reserved\. Proprietary", text[:3000])


def read(path):
    try:
        data = (gzip.open if path.endswith((".gz", ".dz")) else open)(path, "rb").read()
        return data.decode("utf-8")
    except (UnicodeDecodeError, OSError):
        return ""


def wordnet(text):
    """Glosses: `word, word: definition; "example"`."""
    for line in text.split("\n"):
        if line[:1].isdigit() and " | " in line:
            head, gloss = line.split(" | ", 1)
            f = head.split()
            words = [w.replace("_", " ") for w in f[4:4 + 2 * int(f[3], 16):2]]
            yield f"{', '.join(words)}: {gloss.strip()}"


def documents(debian_dir):
    """(package, text) of every page; WordNet's glosses come in pages of 40."""
    for package, (_, pattern) in DEBIAN.items():
        root = f"{debian_dir}/{package}"
        choice = re.search(r"@\(([^)]*)\)", pattern)
        patterns = [pattern.replace(choice[0], c) for c in choice[1].split("|")] if choice else [pattern]
        paths = {os.path.realpath(p) for g in patterns for p in glob.glob(f"{root}/{g}", recursive=True)}
        for path in sorted(p for p in paths if os.path.isfile(p)):
            raw = read(path)
            if package == "wordnet-base":
                lines = list(wordnet(raw))
                for i in range(0, len(lines), 40):
                    yield package, "\n".join(lines[i:i + 40])
            elif raw and allowed(raw):
                text = page_text(raw) if path.endswith(".html") else raw
                if len(text) > 400:
                    yield package, text


def python_files(wheel_dir, stdlib_dir):
    """(package, text) of Python source without tests, bundled third parties and generated tables."""
    skip = re.compile(r"(^|/)(tests?|testing|_?vendor\w*|extern\w*|site-packages|lib2to3|idlelib|locale|data|encodings|"
                      r"test_\w+\.py|\w+_test\.py|providers)(/|$)")
    wanted = {name: lic for lic, names in WHEELS.items() for name in names.split()}
    for path in sorted(glob.glob(f"{wheel_dir}/*.whl")):
        name = os.path.basename(path).split("-")[0].lower()
        if name in wanted:
            with zipfile.ZipFile(path) as z:
                for f in sorted(z.namelist()):
                    if f.endswith(".py") and not skip.search(f):
                        yield name, z.read(f).decode("utf-8", "ignore")
    for path in sorted(glob.glob(f"{stdlib_dir}/**/*.py", recursive=True)):
        if not skip.search(path[len(stdlib_dir):]):
            yield "python", read(path)


def good_python(text):
    lines = text.split("\n")
    longest = max(map(len, lines))
    return allowed(text) and 500 < len(text) < 60000 and longest < 250 and sum(c.isdigit() for c in text) < 0.08 * len(text)
