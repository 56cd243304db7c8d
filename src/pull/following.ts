/** Incremental loading (contract: Client procedures): the change stream, from a time or from a stored cursor. */
import { readChangesPage } from './answers.ts';
import type { Api } from './api.ts';
import type { Copy } from './copy.ts';
import { parametersOf, type Selection } from './selection.ts';

const LIMIT = 1000;

/**
 * Reads on until the stream is caught up; rows and cursor are stored together, page by page.
 *
 * @param since where to start when the copy has no cursor yet
 */
export async function catchUp(
  api: Api,
  copy: Copy,
  selection: Selection,
  since: string,
  onRows: (rows: number) => void,
): Promise<void> {
  for (;;) {
    const cursor = copy.cursor();
    const start = cursor === null ? { since } : { cursor };
    const query = { ...start, ...parametersOf(selection), limit: LIMIT };
    const page = readChangesPage((await api.get('/v1/detections/changes', query)).body);
    if (page.data.length > 0 || page.next_cursor !== cursor)
      copy.store(page.data, { cursor: page.next_cursor });
    onRows(page.data.length);
    if (!page.has_more) return;
  }
}
