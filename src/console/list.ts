/** Forms told their fields, and lists told their columns: filters that the address holds, above pages of rows. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { Field, Option } from '../admin/console/action-table.ts';
import { type Children, type Column, panel, read, table } from './parts.ts';
import { go, linkTo, queryOf, type Route } from './route.ts';
import { useReading } from './server.ts';

/** Options of which the first means none of them. */
export function choices(any: string, of: readonly (string | Option)[]): Option[] {
  return [['', any], ...of.map((one): Option => (typeof one === 'string' ? [one, one] : one))];
}

export const PERIOD: readonly Field[] = [
  { name: 'from', label: 'From (UTC)', type: 'date' },
  { name: 'to', label: 'before', type: 'date' },
];

/** @param held what the fields hold, where they are filters */
export function inputs(fields: readonly Field[], held?: URLSearchParams): VNode[] {
  return fields.map(({ name, label, type, options = [], hint, value: first, required }) => {
    const value = held?.get(name) ?? first;
    if (type === 'checks')
      return html`<fieldset><legend>${label}</legend>${options.map(([one, text]) => html`<label class="check"><input type="checkbox" name=${name} value=${one} checked=${one === value} />${text}</label>`)}</fieldset>`;
    if (options.length > 0)
      return html`<label>${label}<select name=${name} value=${value}>${options.map(([one, text]) => html`<option value=${one} selected=${one === value}>${text}</option>`)}</select></label>`;
    return html`<label>${label}<input name=${name} type=${type ?? 'text'} value=${value} placeholder=${hint} required=${required} min=${type === 'number' ? 0 : undefined} autocomplete="off" spellcheck=${false} /></label>`;
  });
}

/** What a form holds, as an action takes it: numbers, instants in UTC, lists. What is left empty is left out. */
export function givenBy(fields: readonly Field[], form: FormData): Record<string, unknown> {
  const given = fields.map(({ name, type, isList = false }) => {
    const texts = form.getAll(name).flatMap((one) => (isList ? `${one}`.split(/[\s,]+/) : `${one}`.trim()));
    const suffix = type === 'datetime-local' ? ':00Z' : '';
    const values = texts.filter(Boolean).map((text) => (type === 'number' ? Number(text) : text + suffix));
    return [name, isList && values.length > 0 ? values : values[0]] as const;
  });
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}

interface FiltersProps {
  readonly fields: readonly Field[];
  /** Those that are seldom needed. */
  readonly more?: readonly Field[];
  readonly route: Route;
  /** Parameters that stay whatever is filtered. */
  readonly kept?: Readonly<Record<string, string>>;
  /** On its button. */
  readonly submit?: string;
}

/** A choice holds at once, text when Enter is pressed or the field is left. */
export function filters({ fields, more = [], route, kept = {}, submit = 'Filter' }: FiltersProps): VNode {
  const onEvent = (event: Event) => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    const form = new FormData(event.currentTarget);
    const values = [...form].map(([name, value]) => [name, `${value}`.trim()]);
    go(linkTo(route.view, { ...Object.fromEntries(values), ...kept }), true);
  };
  const { parameters } = route;
  return html`<form role="search" onSubmit=${onEvent} onChange=${onEvent}>
    <div class="row fields">${inputs(fields, parameters)}<button>${submit}</button></div>
    ${more.length > 0 && html`<details open=${more.some(({ name }) => parameters.has(name))}><summary>More filters</summary><div class="row fields">${inputs(more, parameters)}</div></details>`}
  </form>`;
}

/** The parameters of an address that are fields, for a query. */
export function valuesOf(fields: readonly Field[], { parameters }: Route): Record<string, string | null> {
  return Object.fromEntries(fields.map(({ name, value = null }) => [name, parameters.get(name) ?? value]));
}

export interface ListProps<Page, Row> extends FiltersProps {
  readonly title: string;
  readonly help: string;
  readonly aside?: Children;
  readonly path: string;
  readonly topics?: readonly string[];
  readonly rowsOf: (page: Page) => readonly Row[];
  readonly columns: readonly Column<Row>[];
  readonly key: (row: Row) => string | number;
  readonly empty: string;
}

function List<Page extends object, Row>({ of }: { of: ListProps<Page, Row> }): VNode {
  const { title, path, fields, route, topics, rowsOf, columns } = of;
  const reading = useReading<Page>(path + queryOf(valuesOf(fields, route)), topics);
  const rows = (_: Page, pages: readonly Page[]) => table(title, pages.flatMap(rowsOf), columns, of);
  return panel(title, [filters(of), read(reading, rows)], of);
}

/** A panel with filters, and the rows that they leave. */
export function list<Page extends object, Row>(of: ListProps<Page, Row>): VNode {
  return html`<${List} key=${of.path} of=${of} />`;
}
