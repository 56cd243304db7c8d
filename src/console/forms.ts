/** Forms made from their fields: those of actions, filters that are kept in the address, and lists with filters. */
import type { TSchema } from '@sinclair/typebox';
import { html } from 'htm/preact';
import type { TargetedEvent, VNode } from 'preact';
import { useEffect } from 'preact/hooks';
import type { FormMember, OperationForm } from '../operations/table.ts';
import type { Children } from './inline.ts';
import { type Column, panel, read, type TableOptions, table } from './parts.ts';
import { go, linkTo, queryOf, type Route } from './route.ts';
import { useReading } from './server.ts';

export type Option = readonly [value: string, text: string];
/** Values to choose from, by member. */
export type Choices = Readonly<Record<string, readonly Option[]>>;

export interface Field {
  readonly name: string;
  readonly label: string;
  /** `checks`: a checkbox for each option. */
  readonly type?: 'date' | 'number' | 'datetime-local' | 'checks';
  readonly options?: readonly Option[];
  readonly hint?: string;
  /** Initial value; of checks, with commas. */
  readonly value?: string;
  readonly required?: boolean;
}

/** Options after a first one that means no filter. */
export const choices = (any: string, listed: readonly (string | Option)[]): Option[] => [
  ['', any],
  ...listed.map((one): Option => (typeof one === 'string' ? [one, one] : one)),
];

/** @param filters their values, if they are filters; without, only the first values are set, not those that follow */
export function inputs(fields: readonly Field[], filters?: URLSearchParams): VNode[] {
  return fields.map(({ name, label, type, options = [], hint, value: first, required }) => {
    const value = filters?.get(name) ?? first;
    const held = filters === undefined ? { defaultValue: value } : { value };
    const check = ([choice, text]: Option) => html`<label class="check">
      <input type="checkbox" name=${name} value=${choice} defaultChecked=${value?.split(',').includes(choice)} />${text}
    </label>`;
    const option = ([choice, text]: Option) =>
      html`<option value=${choice} selected=${choice === value}>${text}</option>`;
    if (type === 'checks') return html`<fieldset><legend>${label}</legend>${options.map(check)}</fieldset>`;
    if (options.length > 0)
      return html`<label>${label}<select name=${name}>${options.map(option)}</select></label>`;
    return html`<label>${label}
      <input name=${name} type=${type ?? 'text'} ...${held} placeholder=${hint} required=${required}
        min=${type === 'number' ? 0 : undefined} autocomplete="off" spellcheck=${false} />
    </label>`;
  });
}

/** The fields of an operation: of the members that it shows and that are not given. @param first their first values */
export function operationFields(
  { members, fields }: OperationForm,
  given: object,
  first: Readonly<Record<string, unknown>>,
  choices: Choices,
): Field[] {
  return members
    .filter(({ name }) => !Object.hasOwn(given, name) && (fields === undefined || fields.includes(name)))
    .map((member) => {
      const { name, hint, required } = member;
      const field = { name, label: labelOf(name), hint, required, ...kindOf(member, choices[name]) };
      if (first[name] === undefined) return field;
      const value = fieldText(first[name]);
      if (field.type === 'checks') return { ...field, value, options: withValues(field.options, value) };
      return { ...field, value: field.type === 'datetime-local' ? value.slice(0, 16) : value };
    });
}

/** As a field shows it: lists with commas. */
function fieldText(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  return value === null ? '' : String(value);
}

/** Also a box for each value that is not among the options, so that a change does not take it away unseen. */
function withValues(options: readonly Option[] = [], value: string): Option[] {
  const others = value.split(',').filter((part) => part !== '' && !options.some(([known]) => known === part));
  return [...options, ...others.map((part): Option => [part, part])];
}

/** `Daily rows` */
export function labelOf(name: string): string {
  const words = name.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function kindOf(member: FormMember, choices?: readonly Option[]): Partial<Field> {
  const { name, schema, several, required, placeholder } = member;
  const item: TSchema = several === 'no' ? schema : (schema.items ?? {});
  const options = choices ?? wordsOf(item).map((word): Option => [word, word]);
  if (several !== 'no' && options.length > 0) return { type: 'checks', options };
  if (placeholder === null) return { type: 'checks', options: [['on', 'yes']] };
  if (options.length > 0) return { options: required ? options : [['', ''], ...options] };
  if (several !== 'no') return {};
  const kinds: TSchema[] = item.anyOf ?? [item];
  if (kinds.some(({ format }) => format === 'date-time'))
    return { type: 'datetime-local', label: `${labelOf(name)} (UTC)` };
  return kinds.some(({ type }) => type === 'integer') ? { type: 'number' } : {};
}

/** The values of an enumeration or a boolean; none of another schema. */
function wordsOf({ type, anyOf = [] }: TSchema): string[] {
  if (type === 'boolean') return ['on', 'off'];
  return anyOf.flatMap(({ const: word }: TSchema) =>
    typeof word === 'string' || typeof word === 'number' ? [`${word}`] : [],
  );
}

/**
 * What was entered, as members of the operation. Empty fields are left out; of a change, those that still have their
 * first value.
 */
export function enteredIn(
  fields: readonly Field[],
  form: FormData,
  { members }: OperationForm,
  isChange: boolean,
): Record<string, unknown> {
  const entered = fields.flatMap(({ name, type, value = '' }) => {
    const member = members.find((known) => known.name === name);
    const texts = form.getAll(name).flatMap((text) => itemsOf(`${text}`, member));
    const before = itemsOf(isChange ? value : '', member);
    if (texts.toSorted().join() === before.toSorted().join()) return [];
    return [[name, memberValue(texts, type, member)]];
  });
  return Object.fromEntries(entered);
}

const itemsOf = (text: string, member: FormMember | undefined): string[] =>
  (member?.several === 'no' ? [text.trim()] : text.split(/[\s,]+/)).filter(Boolean);

/** In JSON; `none` for what is taken away. */
function memberValue(texts: readonly string[], type: Field['type'], member: FormMember | undefined): unknown {
  const [text = ''] = texts;
  if (member?.several !== 'no') return texts.length === 0 ? 'none' : texts;
  if (text === '') return member.schema.anyOf === undefined ? '' : null;
  if (type === 'datetime-local') return `${text}:00Z`;
  return type === 'number' ? Number(text) : text;
}

export interface Filters {
  readonly route: Route;
  readonly fields: readonly Field[];
  /** Parameters that no filter changes. */
  readonly kept?: Readonly<Record<string, string>>;
  readonly submit?: string;
}

/** A selection filters at once, text with Enter or when the field loses the focus. */
export function filters({ route, fields, kept, submit = 'Filter' }: Filters): VNode {
  const onEvent = (event: TargetedEvent<HTMLFormElement>) => {
    event.preventDefault();
    const values = [...new FormData(event.currentTarget)].map(([name, value]) => [name, `${value}`.trim()]);
    go(linkTo(route.view, { ...Object.fromEntries(values), ...kept }), true);
  };
  return html`<form role="search" onSubmit=${onEvent} onChange=${onEvent}>
    <div class="row fields">${inputs(fields, route.parameters)}<button>${submit}</button></div>
  </form>`;
}

export const valuesOf = ({ route: { parameters }, fields }: Filters): Record<string, string | null> =>
  Object.fromEntries(fields.map(({ name, value = null }) => [name, parameters.get(name) ?? value]));

interface ListOptions<Page, Row> extends Filters, Omit<TableOptions<Row>, 'rows'> {
  readonly columns: readonly Column<Row>[];
  readonly help: string;
  readonly aside?: Children;
  readonly path: string;
  readonly topics?: readonly string[];
  readonly rowsOf: (page: Page) => readonly Row[];
  /** What stands above the rows. */
  readonly noteOf?: (first: Page, last: Page, rows: readonly Row[]) => Children;
  /** Further pages are read unasked while there are fewer rows. */
  readonly enough?: number;
  /** The label of the button for the next page. */
  readonly more?: string;
}

export function useList<Page extends object, Row>(list: ListOptions<Page, Row>): VNode {
  const reading = useReading<Page>(list.path + queryOf(valuesOf(list)), list.topics);
  const { pages, isReading, failure } = reading;
  const rows = pages.flatMap(list.rowsOf);
  useEffect(() => {
    const isEnough = rows.length >= (list.enough ?? 0);
    if (!isEnough && !isReading && failure === undefined) reading.older?.();
  }, [pages, isReading]);
  const shown = (first: Page) => [
    list.noteOf?.(first, pages.at(-1) ?? first, rows),
    table({ ...list, rows }, ...list.columns),
  ];
  return panel(list.label, [filters(list), read(reading, shown, list.more)], list);
}
