// Lets one in at a time, in order of arrival: for calls that look something up and then act on it.

export function turnstile(): <T>(pass: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (pass) => {
    const passed = last.then(pass, pass);
    last = passed;
    return passed;
  };
}
