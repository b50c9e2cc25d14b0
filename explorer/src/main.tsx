import { render } from "preact";
import { App } from "./app";
import { readData } from "./data";
import "./style.css";
import "./views/heat";
import "./views/ribbons";
import "./views/multiples";
import "./views/highlights";
import "./views/overlay";
import "./views/neighbourhood";
import "./views/timeline";
import "./views/measures";

render(<App data={readData()} />, document.getElementById("explorer")!);
