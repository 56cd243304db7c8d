/**
 * The members of an operation: what it is given, by name. A command writes a member as an option or an operand, a
 * request as a member of a JSON object, the configuration as a line; one rule reads all of them. No I/O.
 */
import { type TSchema, Type } from '@sinclair/typebox';
import {
  integer,
  isTable,
  listItems,
  plainValue,
  type Reading,
  read,
  readInstant,
  shown,
  wrong,
} from '../config/option-values.ts';
import { didYouMean } from '../nearest.ts';
import { listed, misused, Refused } from '../refused.ts';

export interface Member<Value = unknown, Required extends boolean = boolean> {
  readonly schema: TSchema;
  /** What it is, for the help of a command, a form and the OpenAPI document. */
  readonly hint: string;
  /** What stands for its value in the help: `time`; null for a switch, which has none. */
  readonly placeholder: string | null;
  /** How a command takes several values: not, as one text with commas, or by repeating the option. */
  readonly several: 'no' | 'commas' | 'repeated';
  readonly isRequired: Required;
  /** Whether a command takes its option also without a value: it then counts as not given. */
  readonly mayBeBare?: boolean;
  /** Whether no message may repeat it: it may be a mistyped secret. */
  readonly isSecret: boolean;
  /** @param json its JSON form, or its text */
  readonly read: (json: unknown) => Reading<Value>;
}

export type Members = Readonly<Record<string, Member>>;

type ValueOf<One> = One extends Member<infer Value> ? Value : never;
type RequiredOf<Own extends Members> = {
  [Name in keyof Own]: Own[Name] extends Member<unknown, true> ? Name : never;
}[keyof Own];

export type ValuesOf<Own extends Members> = {
  readonly [Name in RequiredOf<Own>]: ValueOf<Own[Name]>;
} & { readonly [Name in Exclude<keyof Own, RequiredOf<Own>>]?: ValueOf<Own[Name]> };

interface Described
  extends Pick<Member, 'hint'>,
    Partial<Pick<Member, 'placeholder' | 'schema' | 'isSecret'>> {
  /** The text that null stands for; without it, null is wrong. */
  readonly none?: string | null;
}

/** A single value. In JSON it may be a text as on the command line, or a number. */
export function value<Value>(
  readText: (text: string) => Reading<Value>,
  { none = null, ...described }: Described,
): Member<Value, false> {
  return member('no', described, (json) => {
    const text = json === null ? none : textOf(json);
    return text === null ? wrong('a text') : readText(text);
  });
}

function member<Value>(
  several: Member['several'],
  { hint, placeholder = 'text', schema = Type.String(), isSecret = false }: Described,
  read: Member<Value>['read'],
): Member<Value, false> {
  return { schema, hint, placeholder, isSecret, several, isRequired: false, read };
}

export const anyText = (hint: string, placeholder = 'text'): Member<string, false> =>
  value(read<string>, { hint, placeholder });

export const whole = (minimum: number, maximum: number, hint: string, placeholder = 'number') =>
  value(integer(minimum, maximum), { hint, placeholder, schema: Type.Integer({ minimum, maximum }) });

/** An instant with `Z` or an offset; epoch milliseconds. */
export const instant = (hint: string): Member<number, false> =>
  value(readInstant, { hint, placeholder: 'time', schema: Type.String({ format: 'date-time' }) });

/** @throws Refused `usage` for a span of time that ends before it begins; epoch milliseconds */
export function requireSpan(from = 0, to = Number.MAX_SAFE_INTEGER): void {
  if (from >= to) throw misused('--from must be earlier than --to');
}

/** One of some words, which its hint lists. @param usual the default */
export function choice<const Word extends string | number>(
  words: readonly Word[],
  { hint, usual, ...more }: Partial<Pick<Described, 'hint' | 'placeholder'>> & { readonly usual?: Word } = {},
): Member<Word, false> {
  const all = words.length > 2 ? words.join(', ') : words.join(' or ');
  const readWord = (text: string): Reading<Word> => {
    const word = words.find((known) => `${known}` === text);
    return word === undefined ? wrong(words.length > 2 ? `one of ${all}` : all) : read(word);
  };
  return value(readWord, {
    hint: `${hint === undefined ? '' : `${hint}: `}${all}${usual === undefined ? '' : ` (default: ${usual})`}`,
    schema: Type.Union(words.map((word) => Type.Literal(word))),
    ...more,
  });
}

/** What may stand for a list in JSON. */
export const COMMA_LIST = Type.String({ description: 'the list with commas, as on the command line' });

/** Several values: in JSON a list, or a text as on the command line. */
export function list<Value>(
  readItems: (items: readonly string[]) => Reading<Value>,
  { several = 'commas', ...described }: Described & { readonly several?: 'commas' | 'repeated' },
): Member<Value, false> {
  const usual = { placeholder: 'list', schema: Type.Array(Type.String()) };
  return member(several, { ...usual, ...described }, (json) => {
    const items = itemsOf(json);
    return items === null ? wrong('a comma-separated list without empty items') : readItems(items);
  });
}

/** `on` or `off`; in JSON also a boolean. */
export function onOrOff(described: Pick<Described, 'hint' | 'placeholder'>): Member<boolean, false> {
  return member('no', { ...described, schema: Type.Boolean() }, (json) => {
    if (typeof json === 'boolean') return read(json);
    return json === 'on' || json === 'off' ? read(json === 'on') : wrong('on or off');
  });
}

/** Off unless it is given: on the command line an option without a value. */
export const toggle = (hint: string): Member<boolean, false> => onOrOff({ hint, placeholder: null });

export function required<Value>(member: Member<Value, false>): Member<Value, true> {
  return { ...member, isRequired: true };
}

/**
 * Reads what an operation is given.
 * @throws Refused `invalid_request` with every problem: the member, what was expected and what was found
 */
export function readMembers<Own extends Members>(members: Own, given: unknown): ValuesOf<Own> {
  if (!isTable(given)) throw new Refused('invalid_request', `expected a JSON object, found ${shown(given)}`);
  const problems: string[] = [];
  const values = readEach(members, given, (name, problem) => problems.push(`${name}: ${problem}`));
  if (problems.length > 0) throw new Refused('invalid_request', listed(problems, 'members are wrong'));
  return values;
}

/** Reads members as far as they are right. @param complain gets every problem; without any, the values are complete */
export function readEach<Own extends Members>(
  members: Own,
  given: object,
  complain: (name: string, problem: string) => void,
): ValuesOf<Own> {
  const values: Record<string, unknown> = {};
  const known = Object.keys(members);
  for (const [name, json] of Object.entries(given)) {
    const member = Object.hasOwn(members, name) ? members[name] : undefined;
    const reading = member?.read(json);
    if (reading === undefined)
      complain(name, `unknown${didYouMean(name, known) || `; expected ${known.join(', ') || 'no members'}`}`);
    else if (reading.kind === 'read') values[name] = reading.value;
    else complain(name, `expected ${reading.expected}${member?.isSecret ? '' : `, found ${shown(json)}`}`);
  }
  for (const [name, { isRequired, several, hint, read }] of Object.entries(members)) {
    if (!isRequired || Object.hasOwn(given, name)) continue;
    const nothing = read(several === 'no' ? '' : []);
    complain(name, `missing; expected ${nothing.kind === 'wrong' ? nothing.expected : hint}`);
  }
  return values as ValuesOf<Own>;
}

function textOf(json: unknown): string | null {
  if (typeof json === 'number') return String(json);
  const plain = plainValue(json);
  return typeof plain === 'string' ? plain : null;
}

function itemsOf(json: unknown): readonly string[] | null {
  if (!Array.isArray(json)) {
    const text = json === null ? 'none' : textOf(json);
    return text === null ? null : listItems(text);
  }
  const texts = json.map(textOf);
  return texts.every((text) => text !== null) ? texts : null;
}
