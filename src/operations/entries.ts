/** How entries of a list and single ones are printed: the columns say it once for both. */
import { type Column, details, table } from '../text-layout.ts';

/** @param none what is printed if there are no entries */
export function listText<Entry>(columns: readonly Column<Entry>[], none: string) {
  return (entries: readonly Entry[]): string => (entries.length === 0 ? none : table(entries, columns));
}

/** One entry, its columns below one another. */
export function entryText<Entry>(columns: readonly Column<Entry>[]) {
  return (entry: Entry): string =>
    details(columns.map(({ title, value }) => [title.toLowerCase(), value(entry)]));
}
