"""Conversations made by program: prompts for the teacher model, tool use, and small problems with worked thinking.

Everything is a function of a random.Random, so that a seed names a data set and held-out seeds share nothing by chance.
"""
import random

from words import (ADJECTIVES, ANIMALS, CITIES, COUNTRIES, LESSONS, NAMES, PLACES, PROFESSIONS, TASKS, THINGS, TOPICS)


# ---- prompts for the teacher ---------------------------------------------------------------------------------------
def article(word):
    return ("an " if word[0] in "aeiou" else "a ") + word


def story_prompt(r):
    hero = r.choice([f"{article(r.choice(ADJECTIVES))} {r.choice(ANIMALS)}", f"{article(r.choice(ADJECTIVES))} "
                     f"{r.choice(PROFESSIONS)}", f"a child named {r.choice(NAMES)}", f"{r.choice(NAMES)} and "
                     f"{r.choice(NAMES)}", f"{article(r.choice(ANIMALS))} and {article(r.choice(ANIMALS))}"])
    where, thing, lesson = r.choice(PLACES), r.choice(THINGS), r.choice(LESSONS)
    return r.choice([
        f"Write a short story about {hero}.", f"Tell me a story about {hero} in a {where}.",
        f"Write a simple story about {hero} who finds {article(thing)}.", f"Tell a bedtime story about {hero}.",
        f"Write a short story about {hero} and the value of {lesson}.", f"Please write a story that takes place in a {where}.",
        f"Write a story for children about {hero}, {article(thing)} and a {where}.",
        f"Write a story in simple words. It should mention {article(thing)} and a {where}.",
        f"Tell me a short tale that teaches {lesson}."])


def explain_prompt(r):
    t = r.choice(TOPICS)
    return r.choice([f"What is {t}?", f"Explain {t} in simple words.", f"Can you explain {t} to a child?",
                     f"Tell me about {t}.", f"Why is {t} important?", f"Give me three facts about {t}.",
                     f"Write a short paragraph about {t}.", f"What should I know about {t}?", f"Describe {t}."])


def howto_prompt(r):
    t = r.choice(TASKS)
    return r.choice([f"How do I {t}?", f"How can I {t}?", f"Give me some tips to {t}.", f"What is the best way to {t}?",
                     f"I want to {t}. Can you help me?", f"Explain step by step how to {t}."])


def other_prompt(r):
    return r.choice([
        f"Describe a {r.choice(PLACES)} in a few sentences.", f"Write a short poem about {article(r.choice(THINGS))}.",
        f"Write a short letter from {r.choice(NAMES)} to {r.choice(NAMES)}.", f"What can I do in {r.choice(CITIES)}?",
        f"Tell me something about {r.choice(COUNTRIES)}.", f"What does a {r.choice(PROFESSIONS)} do?",
        f"Write a short dialogue between {r.choice(NAMES)} and {r.choice(NAMES)} about {r.choice(TOPICS)}.",
        f"How are {article(r.choice(ANIMALS))} and {article(r.choice(ANIMALS))} different?", "Hello! How are you?",
        f"Hi, my name is {r.choice(NAMES)}. What can you do?", "Tell me a joke.", "Give me some advice for today.",
        f"Where do {r.choice(ANIMALS)}s live and what do they eat?", f"List five uses of {r.choice(TOPICS)}."])


def teacher_prompt(r):
    """A conversation opened for SmolLM2; one in six lets it invent the question as well."""
    head = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n"
    kind = r.random()
    if kind < 1 / 6:
        return head
    make = story_prompt if kind < 0.55 else explain_prompt if kind < 0.78 else howto_prompt if kind < 0.88 else other_prompt
    return head + make(r) + "<|im_end|>\n<|im_start|>assistant\n"


# ---- small problems with worked thinking ---------------------------------------------------------------------------
def arithmetic(r):
    a, b = r.randrange(2, 100), r.randrange(2, 100)
    op = r.choice("+-*+-")
    if op == "*":
        a, b = r.randrange(2, 13), r.randrange(2, 13)
    if op == "-" and b > a:
        a, b = b, a
    v = {"+": a + b, "-": a - b, "*": a * b}[op]
    name = {"+": "plus", "-": "minus", "*": "times"}[op]
    ask = r.choice([f"What is {a} {op} {b}?", f"What is {a} {name} {b}?", f"Calculate {a} {op} {b}.", f"{a} {op} {b} = ?",
                    f"Can you compute {a} {name} {b}?"])
    if op == "*":
        work = f"{a} times {b} is {v}."
    else:
        t = b // 10 * 10
        mid = a + t if op == "+" else a - t
        work = f"{a} {name} {t} is {mid}. {mid} {name} {b - t} is {v}." if t and b - t else f"{a} {name} {b} is {v}."
    return ask, f"The user wants {a} {name} {b}. {work}", r.choice([f"{a} {op} {b} = {v}", f"The answer is {v}.",
                                                                   f"{a} {name} {b} is {v}."])


def word_problem(r):
    n, thing, a, b = r.choice(NAMES), r.choice(["apples", "coins", "books", "shells", "cards", "stamps", "marbles"]), \
        r.randrange(5, 60), r.randrange(2, 30)
    if r.random() < 0.5:
        return (f"{n} has {a} {thing} and gets {b} more. How many {thing} does {n} have now?",
                f"{n} starts with {a} {thing} and gets {b} more, so I add. {a} plus {b} is {a + b}.",
                f"{n} has {a + b} {thing} now.")
    b = min(b, a - 1)
    return (f"{n} has {a} {thing} and gives away {b}. How many {thing} are left?",
            f"{n} starts with {a} {thing} and gives away {b}, so I subtract. {a} minus {b} is {a - b}.",
            f"{n} has {a - b} {thing} left.")


def order_problem(r):
    items = r.sample(r.choice([ANIMALS, THINGS, CITIES, NAMES]), r.randrange(3, 6))
    if r.random() < 0.5:
        return (f"Sort these words alphabetically: {', '.join(items)}.",
                f"The words are {', '.join(items)}. In alphabetical order they start with {min(items)} and end with "
                f"{max(items)}.", ", ".join(sorted(items)))
    k = r.randrange(len(items))
    return (f"Here is a list: {', '.join(items)}. Which one is number {k + 1}?",
            "I count through the list. " + " ".join(f"{i + 1} is {w}." for i, w in enumerate(items[:k + 1])),
            f"Number {k + 1} is {items[k]}.")


def memory_problem(r):
    n, city, animal = r.choice(NAMES), r.choice(CITIES), r.choice(ANIMALS)
    what, answer = r.choice([("my name", f"Your name is {n}."), ("my city", f"You live in {city}."),
                             ("my pet", f"You have {article(animal)}.")])
    return (f"My name is {n}, I live in {city} and I have {article(animal)}. What is {what}?",
            f"The user said: name {n}, city {city}, pet {animal}. The question is about {what.split()[1]}.", answer)


def problem(r):
    return r.choice([arithmetic, arithmetic, word_problem, order_problem, memory_problem])(r)


def chat_reasoning(r, question, answer):
    """Thinking for an answer that the teacher wrote: restate, plan, and the point that the answer opens with."""
    q = question.strip().split("\n")[0][:160]
    point = answer.strip().split("\n")[0].split(". ")[0][:160].rstrip(".:") + "."
    return r.choice([f'The user says: "{q}" ', f"I am asked: {q} ", f'The request is "{q}" ']) + r.choice(
        ["I should answer clearly. ", "I will keep it simple. ", "Let me think about how to begin. ", ""]) + r.choice(
        ["I can start with this: ", "The first point is: ", "A good opening: "]) + point
