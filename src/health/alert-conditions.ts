/**
 * What holds at this moment and stands in no database: alerts that someone opens and closes. They are kept in
 * memory, so that they are there when the database is damaged or the disk is full.
 */
import type { Now } from '../time.ts';
import type { Alert, AlertName } from './alerts.ts';

export interface Conditions {
  /**
   * Opens an alert, or renews its detail; null closes it.
   *
   * @param of tells apart alerts of one name, such as those of two certificates
   */
  set(name: AlertName, detail: string | null, of?: string): void;
  has(name: AlertName): boolean;
  open(): Alert[];
}

/** @param onOpened told of each alert that was not open before */
export function createConditions(now: Now, onOpened: (name: AlertName) => void = () => {}): Conditions {
  const conditions = new Map<string, Alert>();
  return {
    set(name, detail, of = '') {
      const key = `${name} ${of}`;
      const before = conditions.get(key);
      if (detail === null) conditions.delete(key);
      else conditions.set(key, { name, since: before?.since ?? now(), detail });
      if (before === undefined && detail !== null) onOpened(name);
    },
    has: (name) => [...conditions.values()].some((alert) => alert.name === name),
    open: () => [...conditions.values()],
  };
}
