/** @returns does the work; a call while it is under way waits for that one, and has its outcome */
export function oneAtATime<Outcome>(work: () => Promise<Outcome>): () => Promise<Outcome> {
  let underWay: Promise<Outcome> | null = null;
  return () => {
    underWay ??= work().finally(() => {
      underWay = null;
    });
    return underWay;
  };
}
