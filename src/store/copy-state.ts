/** How the copy stands, for status: of a writer what the copy lacks, of a standby what it lacks of the copy. */
export interface CopyState {
  readonly to: string;
  /** Entries of the log that are missing; null: not known. */
  readonly entries_behind: number | null;
  /** Since when something is missing; null: nothing is. */
  readonly behind_since: string | null;
  /** When the place last answered; null: not since the start. */
  readonly contact_at: string | null;
  /** Why it cannot be written or read now; null: it can. */
  readonly failure: string | null;
}
