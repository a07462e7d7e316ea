"""The English and German words of the grammar, with their inflection and semantic classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

# english[/plural] german gender plural classes; a trailing "weak" marks nouns whose accusative and dative singular
# equal their plural (der Junge, den Jungen).
NOUNS = """
man/men Mann m Männer person
woman/women Frau f Frauen person
child/children Kind n Kinder person
boy Junge m Jungen person weak
girl Mädchen n Mädchen person
teacher Lehrer m Lehrer person
student Student m Studenten person weak
doctor Arzt m Ärzte person
nurse Krankenschwester f Krankenschwestern person
king König m Könige person
queen Königin f Königinnen person
farmer Bauer m Bauern person weak
neighbour Nachbar m Nachbarn person weak
friend Freund m Freunde person
brother Bruder m Brüder person
sister Schwester f Schwestern person
mother Mutter f Mütter person
father Vater m Väter person
son Sohn m Söhne person
daughter Tochter f Töchter person
uncle Onkel m Onkel person
aunt Tante f Tanten person
baker Bäcker m Bäcker person
butcher Metzger m Metzger person
cook Koch m Köche person
driver Fahrer m Fahrer person
gardener Gärtner m Gärtner person
hunter Jäger m Jäger person
painter Maler m Maler person
poet Dichter m Dichter person
singer Sänger m Sänger person
soldier Soldat m Soldaten person weak
thief/thieves Dieb m Diebe person
guest Gast m Gäste person
witness Zeuge m Zeugen person weak
judge Richter m Richter person
lawyer Anwalt m Anwälte person
pilot Pilot m Piloten person weak
sailor Matrose m Matrosen person weak
captain Kapitän m Kapitäne person
policeman/policemen Polizist m Polizisten person weak
tourist Tourist m Touristen person weak
prince Prinz m Prinzen person weak
princess Prinzessin f Prinzessinnen person
knight Ritter m Ritter person
witch Hexe f Hexen person
merchant Händler m Händler person
fisherman/fishermen Fischer m Fischer person
engineer Ingenieur m Ingenieure person
dog Hund m Hunde animal,barker
cat Katze f Katzen animal
horse Pferd n Pferde animal
cow Kuh f Kühe animal
pig Schwein n Schweine animal
bird Vogel m Vögel animal
mouse/mice Maus f Mäuse animal
bear Bär m Bären animal weak
wolf/wolves Wolf m Wölfe animal
fox Fuchs m Füchse animal,barker
rabbit Hase m Hasen animal weak
goat Ziege f Ziegen animal
lion Löwe m Löwen animal weak
duck Ente f Enten animal
goose/geese Gans f Gänse animal
frog Frosch m Frösche animal
snake Schlange f Schlangen animal
elephant Elefant m Elefanten animal weak
monkey Affe m Affen animal weak
donkey Esel m Esel animal
cake Kuchen m Kuchen food
apple Apfel m Äpfel food
pear Birne f Birnen food
egg Ei n Eier food
soup Suppe f Suppen food
sausage Wurst f Würste food
potato/potatoes Kartoffel f Kartoffeln food
tomato/tomatoes Tomate f Tomaten food
biscuit Keks m Kekse food
salad Salat m Salate food
cherry Kirsche f Kirschen food
carrot Karotte f Karotten food
pancake Pfannkuchen m Pfannkuchen food
roll Brötchen n Brötchen food
cream Sahne f - topping
cheese Käse m - topping
sugar Zucker m - topping
butter Butter f - topping
salt Salz n - topping
honey Honig m - topping
knife/knives Messer n Messer knife,tool
fork Gabel f Gabeln fork,tool
spoon Löffel m Löffel fork,tool
telescope Fernrohr n Fernrohre telescope,tool
camera Kamera f Kameras telescope,tool
key Schlüssel m Schlüssel key,tool
pen Füller m Füller pen,tool
pencil Bleistift m Bleistifte pen,tool
hammer Hammer m Hämmer hammer,tool
stick Stock m Stöcke hammer,tool
brush Pinsel m Pinsel brush,tool
broom Besen m Besen broom,tool
axe Axt f Äxte knife,tool
rope Seil n Seile rope,tool
net Netz n Netze rope,tool
saw Säge f Sägen knife,tool
hat Hut m Hüte clothing
coat Mantel m Mäntel clothing
scarf/scarves Schal m Schals clothing
dress Kleid n Kleider clothing
shirt Hemd n Hemden clothing
shoe Schuh m Schuhe clothing
jacket Jacke f Jacken clothing
ring Ring m Ringe clothing
crown Krone f Kronen clothing
glove Handschuh m Handschuhe clothing
bag Tasche f Taschen thing,carried
umbrella Regenschirm m Regenschirme thing,carried
backpack Rucksack m Rucksäcke thing,carried
basket Korb m Körbe thing,carried
book Buch n Bücher text
letter Brief m Briefe text
newspaper Zeitung f Zeitungen text
story Geschichte f Geschichten text
song Lied n Lieder text
poem Gedicht n Gedichte text
picture Bild n Bilder picture
map Karte f Karten picture
present Geschenk n Geschenke thing
flower Blume f Blumen thing
vase Vase f Vasen thing
lamp Lampe f Lampen machine
clock Uhr f Uhren machine,thing
radio Radio n Radios machine
computer Computer m Computer machine
phone Telefon n Telefone machine
machine Maschine f Maschinen machine
cup Tasse f Tassen thing
glass Glas n Gläser thing
plate Teller m Teller thing
bottle Flasche f Flaschen thing
box Kiste f Kisten thing,closable
window Fenster n Fenster closable
door Tür f Türen closable
ball Ball m Bälle thing
doll Puppe f Puppen thing
stone Stein m Steine thing
coin Münze f Münzen thing
car Auto n Autos vehicle
bicycle Fahrrad n Fahrräder vehicle
train Zug m Züge vehicle
bus Bus m Busse vehicle
boat Boot n Boote vessel,vehicle
ship Schiff n Schiffe vessel,vehicle
house Haus n Häuser place
garden Garten m Gärten place
school Schule f Schulen place
church Kirche f Kirchen place
forest Wald m Wälder place
village Dorf n Dörfer place
city Stadt f Städte place
park Park m Parks place
kitchen Küche f Küchen place
museum Museum n Museen place
library Bibliothek f Bibliotheken place
hospital Krankenhaus n Krankenhäuser place
restaurant Restaurant n Restaurants place
castle Schloss n Schlösser place
factory Fabrik f Fabriken place
office Büro n Büros place
theatre Theater n Theater place
hotel Hotel n Hotels place
cellar Keller m Keller place
barn Scheune f Scheunen place
tower Turm m Türme place
table Tisch m Tische surface
chair Stuhl m Stühle surface
bed Bett n Betten surface
roof Dach n Dächer surface
bridge Brücke f Brücken surface
bench Bank f Bänke surface
meadow Wiese f Wiesen surface
mountain Berg m Berge surface
island Insel f Inseln surface
"""

NAMES = "Anna Peter Maria Paul Laura Thomas Julia Martin Sophie Felix Clara Jonas".split()

# english german[/stem before an ending] classes; "any" goes with every noun.
ADJECTIVES = """
old alt any
young jung person,animal
big groß any
small klein any
new neu thing,clothing,vehicle,machine,tool,text,picture,place,surface,carried
red rot thing,clothing,vehicle,tool,carried,closable
blue blau thing,clothing,vehicle,tool,carried,closable
green grün thing,clothing,vehicle,tool,carried,closable
black schwarz thing,clothing,vehicle,animal,carried
white weiß thing,clothing,vehicle,animal,carried
beautiful schön person,animal,thing,clothing,text,picture,place
ugly hässlich person,animal,thing,clothing,picture,place
fast schnell animal,vehicle
slow langsam person,animal,vehicle
strong stark person,animal
weak schwach person,animal
rich reich person
poor arm person
happy glücklich person,animal
sad traurig person,animal,text
tired müde/müd person,animal
friendly freundlich person,animal
brave mutig person,animal
clever klug person,animal
expensive teuer/teur thing,clothing,vehicle,machine,picture
cheap billig thing,clothing,vehicle,machine,picture
heavy schwer thing,tool,carried,machine
long lang text,tool
short kurz text
hot heiß food
cold kalt food,place
sweet süß food
fresh frisch food
good gut person,animal,food,text
bad schlecht person,food,text
quiet leise/leis person,animal,machine,place
loud laut person,animal,machine
dark dunkel/dunkl place
famous berühmt person,text,picture,place
sick krank person,animal
hungry hungrig person,animal
lazy faul person,animal
proud stolz person
empty leer thing,carried,place
broken kaputt machine,vehicle,closable
strange seltsam person,animal,text,picture,thing,place
"""

# Adjectives that stand alone for people: the old, die Alten.
NOMINALIZED = {
    "old": "Alten",
    "young": "Jungen",
    "rich": "Reichen",
    "poor": "Armen",
    "sick": "Kranken",
    "brave": "Mutigen",
}


@dataclass(frozen=True)
class Noun:
    """One noun: singular and plural of both languages, German gender (m, f, n) and semantic classes."""

    singular: str
    plural: str
    german: str
    gender: str
    german_plural: str
    classes: frozenset[str]
    weak: bool


@dataclass(frozen=True)
class Adjective:
    """One adjective: English, German predicate, the German stem before endings, and the classes that it fits."""

    english: str
    german: str
    stem: str
    classes: frozenset[str]


def regular_plural(noun: str) -> str:
    """Returns the English plural of a regular noun: church -> churches, cherry -> cherries, dog -> dogs."""
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def _rows(table: str) -> list[list[str]]:
    return [line.split() for line in table.strip().splitlines()]


@cache
def nouns() -> tuple[Noun, ...]:
    """Returns all nouns in the order of the table; mass nouns (class "topping") have "-" as German plural."""
    found = []
    for english, german, gender, german_plural, classes, *weak in _rows(NOUNS):
        singular, _, plural = english.partition("/")
        # The noun itself is a class, too, so that a verb can ask for one noun (to listen to a radio).
        kinds = frozenset([singular, *classes.split(",")])
        found.append(
            Noun(singular, plural or regular_plural(singular), german, gender, german_plural, kinds, bool(weak))
        )
    return tuple(found)


@cache
def adjectives() -> tuple[Adjective, ...]:
    """Returns all adjectives in the order of the table."""
    found = []
    for english, forms, classes in _rows(ADJECTIVES):
        german, _, stem = forms.partition("/")
        found.append(Adjective(english, german, stem or german, frozenset(classes.split(","))))
    return tuple(found)


@cache
def nouns_of(classes: frozenset[str]) -> tuple[Noun, ...]:
    """Returns the nouns that belong to at least one of ``classes``."""
    return tuple(noun for noun in nouns() if noun.classes & classes)


@cache
def adjectives_for(noun: Noun) -> tuple[Adjective, ...]:
    """Returns the adjectives that fit ``noun``."""
    return tuple(
        adjective for adjective in adjectives() if "any" in adjective.classes or adjective.classes & noun.classes
    )
