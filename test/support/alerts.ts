/** The alerts that an appliance has open. */
import { join } from 'node:path';
import { readAlertFile } from '../../src/health/alert-file.ts';
import type { Installation } from './appliance.ts';

/** @returns their names */
export async function openAlertsOf({ data }: Pick<Installation, 'data'>): Promise<string[]> {
  return ((await readAlertFile(join(data, 'alerts.json'))) ?? []).map(({ name }) => name);
}
