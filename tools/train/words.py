"""Word lists of our own, from which prompts, tool calls and small problems are put together."""
_s = str.split

NAMES = _s("Alice Ben Clara David Emma Felix Grace Henry Iris Jack Kate Leo Maria Noah Olivia Paul Quinn Rosa Sam Tina "
           "Uma Victor Wendy Yusuf Zoe Anna Carlos Diana Erik Fatima George Hannah Ivan Julia Kenji Lucas Mia Nadia Omar "
           "Priya Ravi Sofia Tom Vera Will Yuki Lily Max Nina Oscar Ella Ruby Jonas Layla Marco Elena")
CITIES = _s("Paris Berlin London Madrid Rome Vienna Prague Warsaw Oslo Stockholm Helsinki Dublin Lisbon Athens Cairo Nairobi "
            "Lagos Mumbai Delhi Tokyo Osaka Seoul Beijing Shanghai Bangkok Hanoi Jakarta Sydney Melbourne Auckland Toronto "
            "Montreal Chicago Boston Seattle Denver Austin Dallas Miami Atlanta Lima Bogota Santiago Zurich Geneva Munich "
            "Hamburg Milan Naples Porto Seville Lyon Marseille Brussels Amsterdam Copenhagen Budapest Istanbul Dubai")
COUNTRIES = _s("France Germany Spain Italy Austria Poland Norway Sweden Finland Ireland Portugal Greece Egypt Kenya Nigeria "
               "India Japan China Thailand Vietnam Indonesia Australia Canada Mexico Brazil Argentina Peru Chile Turkey")
ANIMALS = _s("fox rabbit bear mouse owl cat dog horse cow sheep goat duck hen frog turtle whale dolphin lion tiger elephant "
             "monkey wolf deer squirrel hedgehog bee butterfly spider crab penguin seal otter crow sparrow eagle swan snail "
             "kitten puppy donkey camel giraffe zebra koala panda")
ADJECTIVES = _s("little brave shy clever lonely kind curious old young tiny lazy happy sad quiet funny proud gentle hungry "
                "sleepy grumpy wise lost silly cheerful careful stubborn patient")
PLACES = ["forest", "village", "small town", "big city", "castle", "farm", "garden", "school", "library", "mountain",
          "river", "lake", "beach", "island", "desert", "cave", "market", "kitchen", "old house", "lighthouse", "train",
          "ship", "museum", "park", "bakery", "workshop", "hospital", "valley", "meadow", "harbor"]
THINGS = _s("key lantern map book boat kite ball hat clock letter coin bell drum flute mirror ring stone feather lamp basket "
            "blanket bridge door window tree flower seed apple cake loaf umbrella bicycle wagon ladder rope box chest star "
            "moon snowman scarf button painting violin")
PROFESSIONS = _s("baker farmer teacher sailor doctor painter tailor shepherd fisherman carpenter gardener musician king queen "
                 "princess knight scientist pilot nurse librarian cook blacksmith miner detective inventor")
LESSONS = ["sharing", "telling the truth", "being patient", "helping others", "working together", "being brave",
           "saying sorry", "trying again", "listening", "kindness", "friendship", "not giving up", "being grateful",
           "taking care of nature", "keeping a promise"]
TOPICS = ["the sun", "the moon", "rain", "snow", "wind", "a rainbow", "a volcano", "an earthquake", "gravity", "light",
          "sound", "heat", "ice", "water", "the ocean", "a river", "a mountain", "a desert", "a forest", "soil", "a seed",
          "a flower", "photosynthesis", "oxygen", "an atom", "a molecule", "energy", "electricity", "a magnet", "a battery",
          "a computer", "the internet", "a computer program", "an algorithm", "a database", "a web browser", "a keyboard",
          "software", "a variable in programming", "a function in Python", "a list in Python", "a loop in programming",
          "a compass", "a clock", "a calendar", "a map", "a bridge", "a wheel", "an engine", "a train", "an airplane",
          "a telescope", "a microscope", "a camera", "a telephone", "a book", "a library", "a museum", "a newspaper", "music",
          "a song", "a poem", "a novel", "painting", "dance", "theater", "history", "geography", "mathematics", "a number",
          "addition", "multiplication", "a fraction", "a triangle", "a circle", "a graph", "statistics", "probability",
          "science", "an experiment", "biology", "chemistry", "physics", "astronomy", "a planet", "a star", "a galaxy",
          "Mars", "Jupiter", "the solar system", "a comet", "a cell", "DNA", "a virus", "bacteria", "a vaccine", "the heart",
          "the brain", "the lungs", "blood", "bones", "muscles", "sleep", "a dream", "food", "bread", "cheese", "honey",
          "coffee", "tea", "salt", "sugar", "rice", "vegetables", "fruit", "an apple", "vitamins", "exercise", "health",
          "money", "a bank", "a market", "a company", "a job", "a budget", "trade", "a tax", "a law", "a government",
          "democracy", "an election", "a city", "a village", "a country", "a language", "an alphabet", "a dictionary",
          "school", "a teacher", "a friend", "a family", "happiness", "courage", "honesty", "patience", "creativity",
          "recycling", "pollution", "climate", "the seasons", "winter", "summer", "spring", "autumn", "a bee", "a butterfly",
          "a whale", "a dog", "a cat", "a horse", "an elephant", "a bird", "a fish", "a spider", "a tree", "an island",
          "a dinosaur", "a fossil", "gold", "iron", "glass", "paper", "plastic", "wood", "cotton", "fire"]
TASKS = ["bake bread", "make tea", "plant a tree", "write a letter", "learn a language", "save money", "clean a room",
         "cook rice", "make a salad", "ride a bicycle", "read more books", "sleep better", "prepare for an exam",
         "make new friends", "grow tomatoes", "take care of a dog", "take care of a cat", "draw a horse", "play chess",
         "learn to swim", "pack for a trip", "write a story", "write a poem", "give a speech", "learn to program",
         "fix a flat tire", "make soup", "make pancakes", "organize my desk", "start a garden", "stay healthy",
         "drink more water", "be more patient", "remember names", "learn the guitar", "paint a wall", "build a birdhouse",
         "make a budget", "write an email", "prepare for a job interview", "plan a birthday party", "take good photos",
         "train for a race", "reduce stress", "recycle at home", "save energy", "read a map", "wash clothes"]
