/** Reads new changes from the change stream of a running appliance. */
import type { Appliance } from './appliance.ts';
import { follow, readerOf } from './lab.ts';

/** Starts at the end of the stream. @returns a function that lists later changes in order: `id version event` */
export async function followStream({ serving, key }: Appliance): Promise<() => Promise<string[]>> {
  const reader = readerOf(serving().url, key);
  const { cursor } = await follow(reader, `since=${new Date().toISOString()}`);
  return async () => {
    const { rows } = await follow(reader, `cursor=${cursor}`);
    return rows.map(({ id, version, event }) => `${id} ${version} ${event}`);
  };
}
