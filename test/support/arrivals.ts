/** Reads new changes from the change stream of a running appliance. */
import assert from 'node:assert/strict';
import type { Appliance } from './appliance.ts';

/** Starts at the end of the stream. @returns a function that lists later changes in order: `id version event` */
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
