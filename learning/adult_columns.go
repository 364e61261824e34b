package learning

// adultColumn describes one of the 14 columns of the Adult files. Numeric columns
// have no levels; the levels of a categorical one are those that occur in rows
// without missing values, sorted bytewise.
type adultColumn struct {
	name   string
	levels []string
}

// The published level counts are 7, 16, 7, 14, 6, 5, 2 and 41. The file spells
// some names its own way. Never-worked is declared by the data set's
// description but occurs only where the occupation is missing.
var adultColumns = [...]adultColumn{
	{name: "age"},
	{
		name: "workclass",
		levels: []string{
			"Federal-gov", "Local-gov", "Private", "Self-emp-inc", "Self-emp-not-inc", "State-gov",
			"Without-pay",
		},
	},
	{name: "fnlwgt"},
	{
		name: "education",
		levels: []string{
			"10th", "11th", "12th", "1st-4th", "5th-6th", "7th-8th", "9th", "Assoc-acdm", "Assoc-voc",
			"Bachelors", "Doctorate", "HS-grad", "Masters", "Preschool", "Prof-school", "Some-college",
		},
	},
	{name: "education-num"},
	{
		name: "marital-status",
		levels: []string{
			"Divorced", "Married-AF-spouse", "Married-civ-spouse", "Married-spouse-absent", "Never-married",
			"Separated", "Widowed",
		},
	},
	{
		name: "occupation",
		levels: []string{
			"Adm-clerical", "Armed-Forces", "Craft-repair", "Exec-managerial", "Farming-fishing",
			"Handlers-cleaners", "Machine-op-inspct", "Other-service", "Priv-house-serv", "Prof-specialty",
			"Protective-serv", "Sales", "Tech-support", "Transport-moving",
		},
	},
	{
		name: "relationship",
		levels: []string{
			"Husband", "Not-in-family", "Other-relative", "Own-child", "Unmarried", "Wife",
		},
	},
	{
		name: "race",
		levels: []string{
			"Amer-Indian-Eskimo", "Asian-Pac-Islander", "Black", "Other", "White",
		},
	},
	{name: "sex", levels: []string{"Female", "Male"}},
	{name: "capital-gain"},
	{name: "capital-loss"},
	{name: "hours-per-week"},
	{
		name: "native-country",
		levels: []string{
			"Cambodia", "Canada", "China", "Columbia", "Cuba", "Dominican-Republic", "Ecuador",
			"El-Salvador", "England", "France", "Germany", "Greece", "Guatemala", "Haiti",
			"Holand-Netherlands", "Honduras", "Hong", "Hungary", "India", "Iran", "Ireland", "Italy",
			"Jamaica", "Japan", "Laos", "Mexico", "Nicaragua", "Outlying-US(Guam-USVI-etc)", "Peru",
			"Philippines", "Poland", "Portugal", "Puerto-Rico", "Scotland", "South", "Taiwan", "Thailand",
			"Trinadad&Tobago", "United-States", "Vietnam", "Yugoslavia",
		},
	},
}
