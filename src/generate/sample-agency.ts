/** The made-up agency that the demonstration serves, and whose subscriptions sample files are written for. */

export const SAMPLE_ACCOUNT = { id: 'sample-agency', name: 'Sample News Agency' } as const;

export const SAMPLE_SUBSCRIPTIONS = [
  { id: 7001, name: 'Daily monitoring', timeZone: 'Europe/Berlin', contentTypes: ['text', 'image'] },
  { id: 7002, name: 'Overseas monitoring', timeZone: 'America/New_York', contentTypes: ['text', 'image'] },
] as const;

/** The agency's own host, in a domain that nobody can own. */
export const SAMPLE_HOST = 'sample-agency.example';
