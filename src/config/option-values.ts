/** Values of command options, requests and the configuration that several places read. No I/O. */
import { isKeyId } from '../auth/key.ts';
import { grouped } from '../counted.ts';
import { parseInstant, parseWindowStart, WINDOW_MS } from '../time.ts';
import { wholeNumber } from './format.ts';

/** The value of a text, or a description of what was expected. */
export type Reading<Value> =
  | { readonly kind: 'read'; readonly value: Value }
  | { readonly kind: 'wrong'; readonly expected: string };

const NAME_CHARACTERS_MAX = 200;

export const KEY_ID = 'a key id: 12 characters from a to z and 2 to 7';

export function readKeyId(text: string): Reading<string> {
  return isKeyId(text) ? read(text) : wrong(KEY_ID);
}

/** A name for people, without control characters; spaces around it are removed. */
export function readName(text: string): Reading<string> {
  const name = text.trim();
  const { length } = [...name];
  const isName = length >= 1 && length <= NAME_CHARACTERS_MAX && !/\p{Cc}/u.test(name) && name.isWellFormed();
  return isName ? read(name) : wrong(`1 to ${NAME_CHARACTERS_MAX} characters`);
}

export function readSwitch(text: string): Reading<boolean> {
  return text === 'on' || text === 'off' ? read(text === 'on') : wrong('on or off');
}

/** The items of a comma-separated text, without duplicates; null if one is empty. */
export function listItems(text: string): string[] | null {
  const items = text.split(',').map((item) => item.trim());
  return items.includes('') ? null : [...new Set(items)];
}

export function read<Value>(value: Value): Reading<Value> {
  return { kind: 'read', value };
}

/** @param expected follows "expected" in the message */
export function wrong<Value>(expected: string): Reading<Value> {
  return { kind: 'wrong', expected };
}

/** An instant with `Z` or an offset; epoch milliseconds. */
export function readInstant(text: string): Reading<number> {
  const ms = parseInstant(text);
  return ms === null ? wrong('a time with Z or an offset, such as 2026-11-21T10:00:00Z') : read(ms);
}

/** The start of a window, as in file names or as a time; epoch milliseconds. */
export function readWindowStart(text: string): Reading<number> {
  const ms = parseWindowStart(text) ?? parseInstant(text);
  return ms === null || ms % WINDOW_MS !== 0
    ? wrong('the start of a ten-minute window, such as 20261121T1010Z or 2026-11-21T10:10:00Z')
    : read(ms);
}

/** A whole number from `min` to `max`, in plain digits. */
export function integer(min: number, max: number) {
  return (text: string): Reading<number> => {
    const number = wholeNumber(text, min, max);
    return number === null ? wrong(`a whole number from ${grouped(min)} to ${grouped(max)}`) : read(number);
  };
}
