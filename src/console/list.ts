/** A list: filters above pages of rows. */
import { html } from 'htm/preact';
import type { VNode } from 'preact';
import { type FiltersProps, filters, valuesOf } from './forms.ts';
import { type Children, type Column, panel, read, table } from './parts.ts';
import { queryOf } from './route.ts';
import { useReading } from './server.ts';

interface ListProps<Page, Row> extends FiltersProps {
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

/** A panel with filters, and the rows that match. */
export function list<Page extends object, Row>(of: ListProps<Page, Row>): VNode {
  return html`<${List} key=${of.path} of=${of} />`;
}
