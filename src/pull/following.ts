/** Incremental loading (contract: Client procedures): the change stream, from a time or from a stored cursor. */
import { readChangesPage } from './answers.ts';
import type { Api } from './api.ts';
import type { Copy, OnPage } from './copy.ts';
import { parametersOf, type Selection } from './selection.ts';

const LIMIT = 1000;

/**
 * Reads on until the stream is caught up; rows and cursor are stored together, page by page.
 *
 * @param since where to start when the copy has no cursor yet
 * @param waitSeconds how long the service may wait for a change where there is none
 * @returns whether the service waited: if so, nothing is gained by waiting here
 */
export async function catchUp(
  api: Api,
  copy: Copy,
  selection: Selection,
  since: string,
  onPage: OnPage,
  waitSeconds = 0,
): Promise<boolean> {
  for (;;) {
    const cursor = copy.cursor();
    const start = cursor === null ? { since } : { cursor };
    const query = { ...start, ...parametersOf(selection), limit: LIMIT };
    const reply = await api.get('/v1/detections/changes', query, waitSeconds);
    const page = readChangesPage(reply.body);
    const isNew = page.data.length > 0 || page.next_cursor !== cursor;
    const stored = isNew ? copy.store(page.data, { cursor: page.next_cursor }) : 0;
    onPage({ what: 'change stream', rows: page.data.length, stored });
    // One that brought something did not wait: the next one may.
    if (!page.has_more && (waitSeconds === 0 || page.data.length === 0)) return reply.hasWaited;
  }
}
