import "./spinner.css";

/** An indicator of work in progress beside a text that names it. */
export function Spinner() {
  return <span className="spinner" aria-hidden="true" />;
}

/** An indicator of work in progress with an accessible name. */
export function LabelledSpinner({ label }: { readonly label: string }) {
  return <span className="spinner large" role="img" aria-label={label} />;
}

/** An indicator of an answer in progress. */
export function Dots({ label }: { readonly label: string }) {
  return (
    <span className="dots" role="img" aria-label={label}>
      <span />
      <span />
      <span />
    </span>
  );
}
