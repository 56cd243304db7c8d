/** Forms made from their fields: those of actions, filters that are kept in the address, and lists with filters. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import type { Field, Option } from '../admin/console/action-table.ts';
import type { Children } from './inline.ts';
import { type Column, panel, read, type TableOptions, table } from './parts.ts';
import { go, linkTo, queryOf, type Route } from './route.ts';
import { useReading } from './server.ts';

/** Options after a first one that means no filter. */
export function choices(any: string, of: readonly (string | Option)[]): Option[] {
  return [['', any], ...of.map((one): Option => (typeof one === 'string' ? [one, one] : one))];
}

export const PERIOD: readonly Field[] = [
  { name: 'from', label: 'From (UTC)', type: 'date' },
  { name: 'to', label: 'before', type: 'date' },
];

/** @param filters their values, if they are filters */
export function inputs(fields: readonly Field[], filters?: URLSearchParams): VNode[] {
  return fields.map(({ name, label, type, options = [], hint, value: first, required }) => {
    const value = filters?.get(name) ?? first;
    const check = ([one, text]: Option) => html`<label class="check">
      <input type="checkbox" name=${name} value=${one} checked=${one === value} />${text}
    </label>`;
    const option = ([one, text]: Option) =>
      html`<option value=${one} selected=${one === value}>${text}</option>`;
    if (type === 'checks') return html`<fieldset><legend>${label}</legend>${options.map(check)}</fieldset>`;
    if (options.length > 0)
      return html`<label>${label}<select name=${name} value=${value}>${options.map(option)}</select></label>`;
    return html`<label>${label}
      <input name=${name} type=${type ?? 'text'} value=${value} placeholder=${hint} required=${required}
        min=${type === 'number' ? 0 : undefined} autocomplete="off" spellcheck=${false} />
    </label>`;
  });
}

/** The values of a form as members of an action: numbers, instants in UTC, lists. Empty fields are left out. */
export function valuesOfForm(fields: readonly Field[], form: FormData): Record<string, unknown> {
  const members = fields.map(({ name, type, isList = false }) => {
    const texts = form.getAll(name).flatMap((one) => (isList ? `${one}`.split(/[\s,]+/) : `${one}`.trim()));
    const suffix = type === 'datetime-local' ? ':00Z' : '';
    const values = texts.filter(Boolean).map((text) => (type === 'number' ? Number(text) : text + suffix));
    return [name, isList && values.length > 0 ? values : values[0]] as const;
  });
  return Object.fromEntries(members.filter(([, value]) => value !== undefined));
}

export interface Filters {
  readonly route: Route;
  readonly fields: readonly Field[];
  /** Fields that are seldom needed. */
  readonly more?: readonly Field[];
  /** Parameters that no filter changes. */
  readonly kept?: Readonly<Record<string, string>>;
}

/** A selection filters at once, text with Enter or when the field loses the focus. */
export function filters({ route, fields, more = [], kept }: Filters, submit = 'Filter'): VNode {
  const onEvent = (event: Event) => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    const form = new FormData(event.currentTarget);
    const values = [...form].map(([name, value]) => [name, `${value}`.trim()]);
    go(linkTo(route.view, { ...Object.fromEntries(values), ...kept }), true);
  };
  const { parameters } = route;
  const seldom = html`<details open=${more.some(({ name }) => parameters.has(name))}>
    <summary>More filters</summary><div class="row fields">${inputs(more, parameters)}</div>
  </details>`;
  return html`<form role="search" onSubmit=${onEvent} onChange=${onEvent}>
    <div class="row fields">${inputs(fields, parameters)}<button>${submit}</button></div>
    ${more.length > 0 && seldom}
  </form>`;
}

/** The filters in the address, for a query. */
export function valuesOf({
  route: { parameters },
  fields,
  more = [],
}: Filters): Record<string, string | null> {
  return Object.fromEntries(
    [...fields, ...more].map(({ name, value = null }) => [name, parameters.get(name) ?? value]),
  );
}

interface ListOptions<Page, Row> extends Filters, Omit<TableOptions<Row>, 'rows'> {
  readonly columns: readonly Column<Row>[];
  readonly help: string;
  readonly aside?: Children;
  readonly path: string;
  readonly topics?: readonly string[];
  readonly rowsOf: (page: Page) => readonly Row[];
}

/** A panel with filters, and the rows that match. */
export function useList<Page extends object, Row>(of: ListOptions<Page, Row>): VNode {
  const reading = useReading<Page>(of.path + queryOf(valuesOf(of)), of.topics);
  const rows = (_: Page, pages: readonly Page[]) =>
    table({ ...of, rows: pages.flatMap(of.rowsOf) }, ...of.columns);
  return panel(of.label, [filters(of), read(reading, rows)], of);
}
