/**
 * What holds at this moment and stands in no database: alerts that someone opens and closes. They are kept in
 * memory, so that they are there when the database is damaged or the disk is full.
 */
import type { Now } from '../time.ts';
import type { Alert, AlertName } from './alerts.ts';

export interface Conditions {
  /** Opens an alert, or renews its detail; null closes it. */
  set(name: AlertName, detail: string | null): void;
  has(name: AlertName): boolean;
  open(): Alert[];
}

/** @param onOpened told of each alert that was not open before */
export function createConditions(now: Now, onOpened: (name: AlertName) => void = () => {}): Conditions {
  const conditions = new Map<AlertName, Alert>();
  return {
    set(name, detail) {
      const before = conditions.get(name);
      if (detail === null) conditions.delete(name);
      else conditions.set(name, { name, since: before?.since ?? now(), detail });
      if (before === undefined && detail !== null) onOpened(name);
    },
    has: (name) => conditions.has(name),
    open: () => [...conditions.values()],
  };
}
