/** Lists that are read page by page, and the filters above them, which the address holds. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { type Children, Mark, Read } from './parts.ts';
import { go, linkTo, type Route } from './route.ts';
import { ask, Failure, type Reading, useReading } from './server.ts';

export interface Field {
  readonly name: string;
  readonly label: string;
  /** Without options, it is text. */
  readonly options?: readonly (readonly [string, string])[];
  readonly type?: 'text' | 'date' | 'number';
  readonly hint?: string;
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
export function Filters({ fields, more = [], route, kept = {}, submit = 'Filter' }: FiltersProps): VNode {
  const { parameters } = route;
  const onEvent = (event: Event) => {
    event.preventDefault();
    if (!(event.currentTarget instanceof HTMLFormElement)) return;
    const values = [...new FormData(event.currentTarget)].map(([name, value]) => [name, `${value}`.trim()]);
    go(linkTo(route.view, { ...Object.fromEntries(values), ...kept }), true);
  };
  const labels = (of: readonly Field[]) =>
    of.map(
      (field) =>
        html`<label key=${field.name}>${field.label}<${Input} field=${field} value=${parameters.get(field.name) ?? ''} /></label>`,
    );
  return html`<form role="search" onSubmit=${onEvent} onChange=${onEvent}>
    <div class="filters">${labels(fields)}<button>${submit}</button></div>
    ${more.length > 0 && html`<details open=${more.some(({ name }) => parameters.has(name))}><summary>More filters</summary><div class="filters">${labels(more)}</div></details>`}
  </form>`;
}

function Input({ field, value }: { field: Field; value: string }): VNode {
  const { name, options, type = 'text', hint } = field;
  if (options === undefined)
    return html`<input name=${name} type=${type} value=${value} placeholder=${hint} autocomplete="off" spellcheck=${false} />`;
  return html`<select name=${name} value=${value}>${options.map(
    ([one, text]) => html`<option value=${one} selected=${one === value}>${text}</option>`,
  )}</select>`;
}

/** The parameters of an address that are fields, for a query. */
export function valuesOf(fields: readonly Field[], { parameters }: Route): Record<string, string | null> {
  return Object.fromEntries(fields.map(({ name }) => [name, parameters.get(name)]));
}

interface Paged<Page> {
  readonly next: string | null;
  readonly pages: readonly Page[];
  readonly first: Reading<Page>;
  readonly failure: Failure | undefined;
  readonly isReading: boolean;
  more(): void;
}

/** Pages of a list. The first is read again when a topic changed, as long as it is the only one. */
export function usePages<Page extends { readonly next: string | null }>(
  path: string,
  topics: readonly string[] = [],
): Paged<Page> {
  const [rest, setRest] = useState<readonly Page[]>([]);
  const [failure, setFailure] = useState<Failure>();
  const [isReading, setIsReading] = useState(false);
  const first = useReading<Page>(path, rest.length === 0 ? topics : []);
  useEffect(() => {
    setRest([]);
    setFailure(undefined);
  }, [path]);
  const pages = first.data === undefined ? [] : [first.data, ...rest];
  const next = pages.at(-1)?.next ?? null;
  const more = async () => {
    if (next === null || isReading) return;
    setIsReading(true);
    setFailure(undefined);
    try {
      const page = await ask<Page>(
        `${path}${path.includes('?') ? '&' : '?'}after=${encodeURIComponent(next)}`,
      );
      setRest((before) => [...before, page]);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      setFailure(error);
    } finally {
      setIsReading(false);
    }
  };
  return { next, pages, first, failure, isReading, more };
}

interface PagesProps<Page> {
  readonly of: Paged<Page>;
  /** On the button that reads the next page. */
  readonly more?: string;
  readonly children: (pages: readonly Page[]) => Children;
}

export function Pages<Page>({ of, more = 'Show more', children }: PagesProps<Page>): VNode {
  return html`<${Read} of=${of.first}>${() => html`${children(of.pages)}
    ${of.failure !== undefined && html`<p class="failure" role="alert"><${Mark} name="failed" /> ${of.failure.message}</p>`}
    ${of.next !== null && html`<button type="button" class="more" disabled=${of.isReading} onClick=${of.more}>${of.isReading ? 'Reading …' : more}</button>`}`}</${Read}>`;
}
