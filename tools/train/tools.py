"""Tool-use conversations made by program: schemas, requests that name the values, calls, results and answers."""
import json

from words import ANIMALS, CITIES, COUNTRIES, NAMES, PLACES, PROFESSIONS, TASKS, THINGS, TOPICS

# Kinds of value: JSON type, description, and how one is drawn. A request quotes the value as str() writes it.
WORDS = THINGS + ANIMALS
KINDS = {
    "city": ("string", "Name of the city", lambda r: r.choice(CITIES)),
    "country": ("string", "Name of the country", lambda r: r.choice(COUNTRIES)),
    "person": ("string", "Name of the person", lambda r: r.choice(NAMES)),
    "topic": ("string", "Topic to look up", lambda r: r.choice(TOPICS)),
    "thing": ("string", "Name of the item", lambda r: r.choice(WORDS)),
    "place": ("string", "Kind of place", lambda r: r.choice(PLACES)),
    "job": ("string", "Profession", lambda r: r.choice(PROFESSIONS)),
    "task": ("string", "What has to be done", lambda r: r.choice(TASKS)),
    "email": ("string", "E-mail address", lambda r: f"{r.choice(NAMES).lower()}@example.{r.choice(['com', 'org', 'net'])}"),
    "date": ("string", "Date as YYYY-MM-DD", lambda r: f"20{r.randrange(20, 30)}-{r.randrange(1, 13):02}-{r.randrange(1, 29):02}"),
    "clock": ("string", "Time as HH:MM", lambda r: f"{r.randrange(24):02}:{r.choice(['00', '15', '30', '45'])}"),
    "file": ("string", "Path of the file", lambda r: f"{r.choice(['docs', 'src', 'data', 'tmp', 'home'])}/"
             f"{r.choice(WORDS)}.{r.choice(['txt', 'py', 'csv', 'json', 'md'])}"),
    "code": ("string", "Identifier", lambda r: f"{r.choice('ABCDEFGH')}{r.choice('KLMNPQRS')}-{r.randrange(100, 1000)}"),
    "currency": ("string", "Currency code", lambda r: r.choice(["USD", "EUR", "GBP", "JPY", "CHF", "CAD"])),
    "count": ("integer", "How many", lambda r: r.randrange(1, 50)),
    "number": ("number", "A number", lambda r: r.choice([r.randrange(1, 1000), round(r.uniform(0, 100), 1), round(r.uniform(0, 10), 2)])),
    "minutes": ("integer", "Duration in minutes", lambda r: r.choice([5, 10, 15, 20, 25, 30, 45, 60, 90, 120])),
    "flag": ("boolean", "Whether it is switched on", lambda r: r.random() < 0.5),
    "items": ("array", "List of items", lambda r: r.sample(WORDS, r.randrange(1, 4))),
}
ENUMS = {"unit": ["celsius", "fahrenheit"], "color": ["red", "green", "blue", "yellow", "white"],
         "level": ["low", "medium", "high"], "language": ["English", "French", "German", "Spanish"],
         "size": ["small", "medium", "large"], "order": ["ascending", "descending"], "genre": ["jazz", "rock", "classical", "pop"]}

# name, description, {parameter: kind}, optional parameters, requests, result keys
T = [
    ("get_weather", "Get the current weather for a city", {"city": "city", "unit": "unit"}, ["unit"],
     ["What is the weather in {city}?", "How is the weather in {city} today?", "Is it raining in {city}?"], "weather"),
    ("get_time", "Get the current local time in a city", {"city": "city"}, [],
     ["What time is it in {city}?", "Tell me the local time in {city}."], "time"),
    ("add", "Add two numbers", {"a": "number", "b": "number"}, [], ["Add {a} and {b}.", "What is the sum of {a} and {b}?"], "value"),
    ("multiply", "Multiply two numbers", {"a": "number", "b": "number"}, [],
     ["Multiply {a} by {b}.", "What is the product of {a} and {b}?"], "value"),
    ("convert_currency", "Convert an amount from one currency to another",
     {"amount": "number", "from_currency": "currency", "to_currency": "currency"}, [],
     ["Convert {amount} {from_currency} to {to_currency}.", "How much is {amount} {from_currency} in {to_currency}?"], "value"),
    ("search_web", "Search the web and return the best results", {"query": "topic", "limit": "count"}, ["limit"],
     ["Search the web for {query}.", "Look up {query} on the web.", "Find {limit} results about {query}."], "text"),
    ("send_email", "Send an e-mail", {"to": "email", "subject": "topic", "body": "task"}, ["body"],
     ["Send an e-mail to {to} with the subject {subject}.", "Write to {to} about {subject}. The text is: {body}"], "status"),
    ("create_event", "Create a calendar event", {"title": "task", "date": "date", "time": "clock"}, ["time"],
     ["Put '{title}' into my calendar on {date} at {time}.", "Create an event '{title}' on {date}."], "status"),
    ("set_timer", "Start a timer", {"minutes": "minutes"}, [], ["Set a timer for {minutes} minutes.",
     "Remind me in {minutes} minutes."], "status"),
    ("set_alarm", "Set an alarm", {"time": "clock", "label": "task"}, ["label"],
     ["Wake me at {time}.", "Set an alarm for {time} with the label {label}."], "status"),
    ("read_file", "Read a text file", {"path": "file"}, [], ["Show me the file {path}.", "What is in {path}?", "Read {path}."], "text"),
    ("delete_file", "Delete a file", {"path": "file", "force": "flag"}, ["force"],
     ["Delete {path}.", "Remove the file {path} with force {force}."], "status"),
    ("translate", "Translate a word into another language", {"text": "thing", "language": "language"}, [],
     ["Translate '{text}' into {language}.", "How do you say {text} in {language}?"], "word"),
    ("turn_light", "Switch a light on or off", {"room": "place", "on": "flag", "color": "color"}, ["color"],
     ["Set the light in the {room} to {on}.", "Make the light in the {room} {color} and set it to {on}."], "status"),
    ("get_stock_price", "Get the price of a stock", {"symbol": "code"}, [],
     ["What is the price of {symbol}?", "How does the stock {symbol} stand?"], "value"),
    ("find_flights", "Find flights between two cities", {"origin": "city", "destination": "city", "date": "date"}, ["date"],
     ["Find a flight from {origin} to {destination}.", "I want to fly from {origin} to {destination} on {date}."], "text"),
    ("book_table", "Book a table in a restaurant", {"city": "city", "people": "count", "time": "clock"}, [],
     ["Book a table for {people} people in {city} at {time}."], "status"),
    ("get_population", "Get the population of a country", {"country": "country"}, [],
     ["How many people live in {country}?", "What is the population of {country}?"], "value"),
    ("get_capital", "Get the capital of a country", {"country": "country"}, [], ["What is the capital of {country}?"], "word"),
    ("play_music", "Play music of a genre", {"genre": "genre", "volume": "count"}, ["volume"],
     ["Play some {genre}.", "Play {genre} at volume {volume}."], "status"),
    ("add_to_list", "Add items to the shopping list", {"items": "items"}, [],
     ["Put {items} on my shopping list.", "Add {items} to the list."], "status"),
    ("track_package", "Find out where a package is", {"tracking_id": "code"}, [],
     ["Where is my package {tracking_id}?", "Track {tracking_id} for me."], "text"),
    ("order_item", "Order an item", {"item": "thing", "quantity": "count", "size": "size"}, ["size"],
     ["Order {quantity} of the item {item}.", "I would like {quantity} {item} in size {size}."], "status"),
    ("create_task", "Add a task to the to-do list", {"task": "task", "priority": "level"}, ["priority"],
     ["Add '{task}' to my tasks.", "I have to {task}. Note it with {priority} priority."], "status"),
    ("get_contact", "Look up a contact", {"name": "person"}, [], ["What is the number of {name}?", "Look up {name}."], "text"),
    ("call_person", "Start a phone call", {"name": "person"}, [], ["Call {name}.", "Please phone {name}."], "status"),
    ("sort_items", "Sort a list", {"items": "items", "order": "order"}, [],
     ["Sort {items} in {order} order."], "text"),
    ("get_distance", "Distance between two cities", {"origin": "city", "destination": "city"}, [],
     ["How far is it from {origin} to {destination}?"], "value"),
    ("roll_dice", "Roll dice", {"count": "count", "sides": "count"}, [], ["Roll {count} dice with {sides} sides."], "value"),
    ("define_word", "Get the definition of a word", {"word": "thing"}, [], ["What does {word} mean?", "Define {word}."], "text"),
    ("find_jobs", "Search for open positions", {"job": "job", "city": "city"}, ["city"],
     ["Find work as a {job}.", "Are there open positions for a {job} in {city}?"], "text"),
    ("set_temperature", "Set the heating of a room", {"room": "place", "degrees": "number"}, [],
     ["Set the {room} to {degrees} degrees."], "status"),
]
VERBS = "get find fetch check update create remove list count start stop open close compare measure load store".split()
NOUNS = "record report order ticket sensor account invoice room device image score route meeting ticket note project".split()


def draw(r, kind):
    return r.choice(ENUMS[kind]) if kind in ENUMS else KINDS[kind][2](r)


def invented(r):
    """A tool nobody has seen: the model has to read the schema."""
    verb, noun = r.choice(VERBS), r.choice(NOUNS)
    kinds = r.sample(["city", "person", "code", "date", "count", "file", "flag", "level", "color", "email", "number"], r.randrange(1, 4))
    name = {"person": "name", "code": "id", "file": "path"}
    params = {name.get(k, k): k for k in kinds}
    tail = " and ".join(f"{p} {{{p}}}" for p in params)
    return (f"{verb}_{noun}", f"{verb.capitalize()} {('an ' if noun[0] in 'aeiou' else 'a ')}{noun}", params, [],
            [f"{verb.capitalize()} the {noun} with {tail}.", f"Please {verb} the {noun} for {tail}.",
             f"I need to {verb} the {noun}: {tail}."], r.choice(["status", "text", "value"]))


def schema(tool):
    name, desc, params, optional, _, _ = tool
    props = {}
    for p, k in params.items():
        if k in ENUMS:
            props[p] = {"type": "string", "enum": ENUMS[k]}
        else:
            props[p] = {"type": KINDS[k][0], "description": KINDS[k][1]}
            if KINDS[k][0] == "array":
                props[p]["items"] = {"type": "string"}
    return {"name": name, "description": desc, "parameters": {
        "type": "object", "properties": props, "required": [p for p in params if p not in optional]}}


def spoken(v):
    if isinstance(v, bool):
        return "on" if v else "off"
    return ", ".join(v[:-1]) + (" and " if len(v) > 1 else "") + v[-1] if isinstance(v, list) else str(v)


def request(r, tool):
    """(text, arguments): only parameters that the text names are passed."""
    template = r.choice(tool[4])
    args = {p: draw(r, k) for p, k in tool[2].items() if "{" + p + "}" in template or p not in tool[3]}
    text = template.format(**{p: spoken(v) for p, v in args.items()})
    return text, args


def result(r, kind, args):
    """(tool output, answer)"""
    first = spoken(next(iter(args.values())))
    if kind == "weather":
        t, sky = r.randrange(-5, 35), r.choice(["sunny", "cloudy", "rainy", "windy", "snowy"])
        return {"temperature": t, "sky": sky}, f"It is {sky} in {first} with {t} degrees."
    if kind == "time":
        v = draw(r, "clock")
        return {"time": v}, f"It is {v} in {first}."
    if kind == "value":
        v = draw(r, "number")
        return {"result": v}, r.choice([f"The result is {v}.", f"It is {v}."])
    if kind == "word":
        v = r.choice(WORDS)
        return {"result": v}, r.choice([f"It is {v}.", f"The answer is {v}."])
    if kind == "status":
        if r.random() < 0.15:
            return {"error": "not found"}, "That did not work: not found."
        return {"status": "ok"}, r.choice(["Done.", "It is done.", "Done, everything went well."])
    v = f"{r.choice(WORDS)} {r.choice(WORDS)} {r.choice(WORDS)}"
    return {"text": v}, r.choice([f"Here is what I found: {v}.", f"The result says: {v}."])


def reasoning(r, tool, args):
    values = " and ".join(f"{p} is {spoken(v)}" for p, v in args.items())
    return r.choice([f"The user needs {tool[0]}. ", f"I can use {tool[0]} for this. ", f"The tool {tool[0]} fits. "]) + \
        f"The {values}." if args else "I call the tool."


def conversation(r, thinking, chat=None):
    """Messages of one conversation with tools. Some need no tool, some two calls at once, most get their result."""
    n = r.choice([1, 1, 2, 2, 3, 4])
    tools, seen = [], set()
    while len(tools) < n:
        t = invented(r) if r.random() < 0.4 else r.choice(T)
        if t[0] not in seen:
            tools.append(t)
            seen.add(t[0])
    system = dict(role="system", content=r.choice(["", "", "You are a helpful assistant.", "Be brief.", "Use tools when they help."]),
                  tools=[schema(t) for t in tools])
    out = [system]
    if chat and r.random() < 0.12:
        q, a = chat
        out += [dict(role="user", content=q), dict(role="assistant", content=a, reasoning="This needs no tool.")]
    for _ in range(r.choice([1, 1, 2])):
        picked = [r.choice(tools)] if r.random() < 0.85 else [r.choice(tools), r.choice(tools)]
        asks = [request(r, t) for t in picked]
        out.append(dict(role="user", content=" ".join(a for a, _ in asks)))
        out.append(dict(role="assistant", content=r.choice(["", "", "", "Let me check.", "One moment."]),
                        reasoning=" ".join(reasoning(r, t, args) for t, (_, args) in zip(picked, asks)),
                        calls=[dict(name=t[0], arguments=args) for t, (_, args) in zip(picked, asks)]))
        answers = [result(r, t[5], args) for t, (_, args) in zip(picked, asks)]
        out += [dict(role="tool", content=json.dumps(o)) for o, _ in answers]
        out.append(dict(role="assistant", content=" ".join(a for _, a in answers), reasoning=r.choice(
            ["I have the result.", "The tool answered.", "Now I can answer."])))
    return out
