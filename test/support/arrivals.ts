/** What reaches the change stream of a running appliance from a moment on. */
import assert from 'node:assert/strict';
import type { Appliance } from './appliance.ts';

/** Stands at the end of the stream. @returns what tells what has come since: `id version event`, in order of arrival */
export async function followStream(appliance: Appliance): Promise<() => Promise<string[]>> {
  const read = async (start: string) => {
    const response = await appliance.get(`/v1/detections/changes?${start}&limit=1000`);
    const text = await response.text();
    assert.equal(response.status, 200, text);
    return JSON.parse(text);
  };
  let page = await read(`since=${new Date().toISOString()}`);
  while (page.has_more) page = await read(`cursor=${page.next_cursor}`);
  const cursor: string = page.next_cursor;
  return async () => {
    const { data } = await read(`cursor=${cursor}`);
    return data.map(
      ({ id, version, event }: { id: string; version: number; event: string }) => `${id} ${version} ${event}`,
    );
  };
}
