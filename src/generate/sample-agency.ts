/** The invented agency of `demo` and `lab`; sample files are written for its subscriptions. */

export const SAMPLE_ACCOUNT = { id: 'sample-agency', name: 'Sample News Agency' } as const;

export const SAMPLE_SUBSCRIPTIONS = [
  { id: 7001, name: 'Daily monitoring', timeZone: 'Europe/Berlin', contentTypes: ['text', 'image'] },
  { id: 7002, name: 'Overseas monitoring', timeZone: 'America/New_York', contentTypes: ['text', 'image'] },
] as const;

/** In a reserved domain. */
export const SAMPLE_HOST = 'sample-agency.example';
